"""Connection tracking table capacity (RFC 9693 section 4.9)."""
