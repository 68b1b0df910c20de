"""The database of a campaign of preference judging, SQLite or PostgreSQL.

`database` opens it, `campaigns` fills it, `desk` is what a judge does, `readings` and `payments`
are for the organiser.
"""
