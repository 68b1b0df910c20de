"""How to rank a collection without labels, and how well it works."""
