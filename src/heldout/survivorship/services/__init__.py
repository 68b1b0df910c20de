"""What the commands of survivorship do: functions that print nothing."""
