"""Whether a ranking holds on other measures, queries, labels and collections."""
