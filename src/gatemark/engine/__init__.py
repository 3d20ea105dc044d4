"""The process that sends and receives, and a device made of numbers that stands in for it (`simulated`)."""
