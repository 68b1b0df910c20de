"""The MS MARCO boards: their tables, read as published, and the record a new board begins with."""
