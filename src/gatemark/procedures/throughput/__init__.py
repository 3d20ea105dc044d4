"""Throughput (RFC 2544 section 26.1, RFC 8219 section 7.1)."""
