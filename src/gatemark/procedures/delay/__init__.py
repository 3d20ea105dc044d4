"""Latency and packet delay variation (RFC 8219 sections 7.2 and 7.3)."""
