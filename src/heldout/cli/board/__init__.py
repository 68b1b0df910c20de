"""Commands of organisers and participants."""
