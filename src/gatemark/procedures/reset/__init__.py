"""Reset (RFC 2544 section 26.6, RFC 6201)."""
