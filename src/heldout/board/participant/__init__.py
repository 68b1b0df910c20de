"""What a participant does: register, draft, check, seal, send."""
