"""Conformity: what a gateway drops and delivers (RFC 7599)."""
