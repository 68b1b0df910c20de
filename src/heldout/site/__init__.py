"""The public page: frozen data in, bytes out."""
