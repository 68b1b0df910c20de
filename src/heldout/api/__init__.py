"""The Python API: what `import heldout` offers. It calls the services that the commands call."""
