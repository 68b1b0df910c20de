"""How the tables of a campaign came to be, step by step, for Alembic."""
