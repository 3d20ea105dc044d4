"""Kernels that run as a process: User-Mode Linux, built from Debian's sources, kept in the user's cache folder."""
