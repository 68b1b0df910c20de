"""Hosted intake: teams, their tokens, uploads that can be resumed, quota, and jobs."""
