"""`python -m heldout`."""

from heldout.cli.program import main

if __name__ == "__main__":
    main()
