"""What happened to a board: its events, and what they come to.

`events` is the chain, `event_fields` and `event_order` say what an event may be, `history` folds
them into teams and submissions. Knows no other room of `board`.
"""
