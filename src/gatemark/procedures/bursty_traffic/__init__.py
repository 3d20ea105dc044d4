"""Bursty traffic (RFC 2544 section 21)."""
