"""The judge's pages and the organiser's, over HTTP."""
