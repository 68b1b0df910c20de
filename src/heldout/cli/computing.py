"""Where an analysis is computed: the option that names a Dask cluster."""

import click

__all__ = ["dask_option"]

dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Compute on a Dask cluster: its scheduler, as in tcp://HOST:8786.",
)
"""`--dask`; for `heldout.store.compute.open_executor`."""
