"""Searches over loads: pure functions from what was measured to what to measure next."""
