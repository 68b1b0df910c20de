"""What an organiser does: receive, review, decide, rebuild, change keys."""
