"""Connection tear-down rate (RFC 9693 section 4.8)."""
