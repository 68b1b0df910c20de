"""What every wing with a database shares: addresses, opening, errors, times."""
