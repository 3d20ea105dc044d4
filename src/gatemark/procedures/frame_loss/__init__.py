"""Frame loss rate (RFC 2544 section 26.3)."""
