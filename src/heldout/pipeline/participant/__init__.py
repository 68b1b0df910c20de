"""A participant's side, in a clone of the board: draft, check, seal, send, register."""
