"""Benchmarks of the engine: `make bench`. README.md says what the figures mean."""
