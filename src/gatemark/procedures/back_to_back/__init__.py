"""Back-to-back frames (RFC 2544 section 26.4, RFC 9004)."""
