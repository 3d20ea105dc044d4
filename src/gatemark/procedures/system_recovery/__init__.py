"""System recovery (RFC 2544 section 26.5)."""
