"""The red team: attackers against a board's release, before the board opens."""
