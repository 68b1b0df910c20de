"""How much of the held-out labels what was told could have carried, in bits."""
