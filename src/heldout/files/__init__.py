"""Durable writes, locks, executors: what touches this machine and knows nothing of boards."""
