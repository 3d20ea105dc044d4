"""The process that sends and receives."""
