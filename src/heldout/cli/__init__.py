"""The command line: arguments, printing, exit codes; a module per group of commands."""
