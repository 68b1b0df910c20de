"""Reading the field's files: runs, qrels, queries, and the one order of documents."""
