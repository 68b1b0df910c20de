"""What a service answers: facts, tables, a JSON document, a picture; and how these are written."""
