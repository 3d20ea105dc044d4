"""A series of campaigns that differ in some keys of their file: measured one after the other, and joined."""
