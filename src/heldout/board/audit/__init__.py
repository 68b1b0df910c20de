"""Proof that nothing was changed: audits of the log, of receipts and of archives."""
