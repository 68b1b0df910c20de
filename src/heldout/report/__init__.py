"""What an analysis says: tables for terminal, Markdown and LaTeX, JSON, and charts."""
