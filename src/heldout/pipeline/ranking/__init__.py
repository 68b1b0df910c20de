"""What a board tells of its ranking beside the scores."""
