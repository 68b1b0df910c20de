"""The board's page, its exports and its feed: no module here may reach a key."""
