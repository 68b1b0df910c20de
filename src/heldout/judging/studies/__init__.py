"""What is reported of a campaign."""
