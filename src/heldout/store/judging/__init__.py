"""The database of a campaign of preference judging, SQLite or PostgreSQL.

`database` opens it, `campaigns` fills it; `claims` and `desk` are what a judge does; `readings`
and `payments` are for the organiser.
"""

from importlib.util import find_spec

from heldout.errors import SetupError

if not (find_spec("sqlalchemy") and find_spec("alembic")):
    raise SetupError("a campaign's database needs SQLAlchemy: pip install 'heldout[web]'")
