"""Annotations wherever they come from: published files, our own, our judging pages, simulations."""
