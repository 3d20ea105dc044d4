"""Procedures for stateful gateways (RFC 9693): the metrics of connections themselves."""
