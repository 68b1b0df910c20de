"""Every row of a database as lines of JSON, and back: from either engine into either.

Rows are read as of one moment, in a transaction, while others go on. They are written into a
database that has none, all of them or none. What is stored is what lies in the tables; the types
are those of the engine's own columns, which both engines have alike.

A table is a line with the names of its columns, and a line for each row in the order of its key.
Bytes are base64, times ISO 8601.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Column, Connection, MetaData, Table, func, insert, select, text

from heldout.database.database import Database, Schema, open_database, open_existing, versions
from heldout.database.errors import DatabaseError
from heldout.errors import InputError

_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """What was read of a database.

    Attributes:
        versions: name of each schema that it has -> its version.
        rows: name of each table -> number of rows.
    """

    versions: Mapping[str, int]
    rows: Mapping[str, int]


def dump_database(
    url: str, schemas: Sequence[Schema], store: Callable[[str, Iterable[bytes]], None]
) -> Dump:
    """Read every row, as of one moment; nothing is changed, not even the schema.

    Args:
        url: of the database.
        schemas: whose tables may lie in it.
        store: gets the name and the lines of each table.

    Raises:
        DatabaseError: it cannot be read, or has none of these schemas.
    """
    database = open_existing(url)

    def work(connection: Connection) -> Dump:
        found = {one.name: one.find_version(connection) for one in schemas}
        known = {schema: version for schema, version in found.items() if version is not None}
        if not known:
            raise DatabaseError("database-other", f"{database.name} holds no tables of heldout")
        rows: dict[str, int] = {}
        for table in _tables_of(connection):
            lines = _Lines(connection, table)
            store(str(table.name), lines)
            rows[str(table.name)] = lines.rows
        return Dump(versions=known, rows=rows)

    try:
        return database.read(work)
    finally:
        database.close()


class _Lines:
    """The lines of a table; counts its rows."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self._table = table
        self.rows = 0

    def __iter__(self) -> Iterator[bytes]:
        columns = list(self._table.columns)
        yield msgspec.json.encode([str(column.name) for column in columns]) + b"\n"
        query = select(*columns).order_by(*self._table.primary_key.columns)
        result = self._connection.execution_options(yield_per=_ROWS).execute(query)
        for row in result:
            self.rows += 1
            yield msgspec.json.encode(list(row)) + b"\n"


def check_empty(url: str) -> None:
    """Refuse a database that holds rows.

    Raises:
        InputError: code `restore-place`.
        DatabaseError: it cannot be read.
    """
    database = open_database(url)
    try:
        database.read(lambda connection: _check_empty(connection, database))
    finally:
        database.close()


def load_database(
    url: str,
    schemas: Sequence[Schema],
    *,
    known: Mapping[str, int],
    tables: Mapping[str, Iterable[bytes]],
) -> None:
    """Write rows into a database that has none.

    Args:
        url: of the database.
        schemas: those that a dump may have.
        known: name of each schema of the dump -> its version.
        tables: name -> lines of the dump.

    Raises:
        InputError: code `restore-place`: it holds rows.
        DatabaseError: it cannot be written, or code `database-other`: the dump is of another
            version of heldout.
        ValueError: the lines are not those of such tables.
    """
    wanted = [one for one in schemas if known.get(one.name) == one.version]
    if len(wanted) < len(known):
        raise DatabaseError("database-other", "the backup has tables of another heldout's version")
    database = open_database(url)
    try:
        database.read(lambda connection: _check_empty(connection, database))
    finally:
        database.close()
    database = open_database(url, *wanted)
    try:
        database.write(lambda connection: _load(connection, tables))
    finally:
        database.close()


def _tables_of(connection: Connection) -> list[Table]:
    """The tables as they lie there, those that others refer to first."""
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != versions.name]


def _check_empty(connection: Connection, database: Database) -> None:
    for table in _tables_of(connection):
        if connection.execute(select(func.count()).select_from(table)).scalar_one():
            raise InputError.of(
                "restore-place",
                database.name,
                f"rows in its table {table.name}",
                "an empty database: nothing is ever written over",
            )


def _load(connection: Connection, tables: Mapping[str, Iterable[bytes]]) -> None:
    there = _tables_of(connection)
    if unknown := tables.keys() - {table.name for table in there}:
        raise ValueError(f"no table {min(unknown)}")
    for table in there:
        if table.name in tables:
            rows = _read_rows(table, tables[table.name])
            while some := list(islice(rows, _ROWS)):
                connection.execute(insert(table), some)
            _go_on_counting(connection, table)


def _read_rows(table: Table, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The rows of a table, each after those of the same table that it refers to."""
    decoded = _decode(table, lines)
    own = [
        (constraint.column_keys, [element.column.name for element in constraint.elements])
        for constraint in table.foreign_key_constraints
        if constraint.referred_table is table
    ]
    if not own:
        yield from decoded
        return
    waiting, there = list(decoded), [set[tuple[Any, ...]]() for _ in own]
    while waiting:
        later = []
        for row in waiting:
            named = [tuple(row[key] for key in keys) for keys, _ in own]
            itself = [tuple(row[key] for key in referred) for _, referred in own]
            if all(
                None in name or name == this or name in known
                for name, this, known in zip(named, itself, there, strict=True)
            ):
                for known, this in zip(there, itself, strict=True):
                    known.add(this)
                yield row
            else:
                later.append(row)
        if len(later) == len(waiting):
            raise ValueError(f"{table.name} refers to rows that are missing")
        waiting = later


def _decode(table: Table, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    given = iter(lines)
    names = msgspec.json.decode(next(given, b"[]"), type=list[str])
    columns = {column.name: column for column in table.columns}
    if set(names) != columns.keys() or len(names) != len(columns):
        raise ValueError(f"{table.name} has other columns")
    readers = [_reader(columns[name]) for name in names]
    for line in given:
        values = msgspec.json.decode(line, type=list[Any])
        yield {
            name: None if value is None else read(value)
            for name, read, value in zip(names, readers, values, strict=True)
        }


def _reader(column: Column[Any]) -> Callable[[Any], Any]:
    """Return what makes a column's value of its JSON."""
    kind = column.type.python_type
    if kind in (bytes, datetime):
        return lambda value: msgspec.convert(value, kind)
    return lambda value: value


def _go_on_counting(connection: Connection, table: Table) -> None:
    """Let PostgreSQL number new rows after those that are here; SQLite does so by itself."""
    if connection.dialect.name != "postgresql":
        return
    for column in table.primary_key.columns:
        quoted = connection.dialect.identifier_preparer.quote(table.name)
        ask = text("SELECT pg_get_serial_sequence(:table, :column)")
        found = connection.execute(ask, {"table": quoted, "column": column.name}).scalar_one()
        last = connection.execute(select(func.max(column))).scalar_one()
        if found is not None and last is not None:
            connection.execute(text("SELECT setval(:name, :last)"), {"name": found, "last": last})
