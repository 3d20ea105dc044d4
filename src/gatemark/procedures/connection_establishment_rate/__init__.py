"""Maximum connection establishment rate, plain and validated (RFC 9693 sections 4.5 and 4.6)."""
