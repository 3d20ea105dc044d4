"""Overload: echo requests of more and more clients, and how the gateway degrades."""
