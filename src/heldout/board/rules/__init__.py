"""What a board has bound itself to: board.toml as values, and what its keys mean on a given day.

`spec` has the values, `spec_file` reads them, `spec_checks` and `view_checks` say what may be wrong
with them; `release`, `trust`, `deadlines`, `consent` are what single tables of it mean.
"""
