"""The campaign file: what it may say, the RFC defaults, and every way in which it can be wrong."""
