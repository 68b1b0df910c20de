"""What the commands of `heldout prefer` do, without a command line."""
