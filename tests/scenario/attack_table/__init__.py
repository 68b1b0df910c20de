"""The table of attacks, a module for each family; `attacks.py` puts them together."""
