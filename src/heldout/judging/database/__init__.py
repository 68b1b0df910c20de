"""The database of a campaign: SQLite or PostgreSQL."""
