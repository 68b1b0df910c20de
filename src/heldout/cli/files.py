"""Options that the commands on run files share."""

import click

from heldout.cli.options import add_option
from heldout.scoring.run_files import RunOrder

order_option = add_option("order", RunOrder, None)
"""`--order`."""

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
"""`--json`."""
