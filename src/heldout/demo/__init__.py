"""What `heldout demo` plays: a shared task from runs to a page, then better labels for it."""
