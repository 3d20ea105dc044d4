"""The reference gateway `gatemark-refdut` as seen from Python: its configuration and its process."""
