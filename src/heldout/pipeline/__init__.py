"""Strings the steps of a submission together; the only place that does."""
