"""Rankers that need torch."""
