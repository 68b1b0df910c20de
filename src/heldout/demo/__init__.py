"""What `heldout demo` plays, a shared task and better labels for it; the tutorials' files."""
