"""Sealed submissions: age files, and the OpenSSL form of the MS MARCO boards."""
