"""Backups of board, vault, database and folders: one encrypted file, and back."""
