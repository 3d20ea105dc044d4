"""Summaries of repeated measurements (RFC 8219 section 12)."""
