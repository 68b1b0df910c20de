"""What every wing with a database shares: addresses, opening, migrations, errors, times."""
