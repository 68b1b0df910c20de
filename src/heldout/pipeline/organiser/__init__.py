"""Where an organiser sits: a board, its vault, its keys and rules, the time."""
