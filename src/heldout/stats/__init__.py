"""Statistics on arrays: tests, resampling, corrections, agreement. Knows no runs and no boards."""
