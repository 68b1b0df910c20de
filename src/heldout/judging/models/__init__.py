"""Language models as judges, compared with people."""
