"""A kernel of its own for the gateway: its processes, and how commands get into it and out of it.

::

    gatemark ── client ──socket── relay ──serial line── agent ── command
                (one a command)   └── User-Mode Linux ──┘ inside

`relay` and `client` are programs of the standard library alone, so that each starts in hundredths of a second. What a
command reads and prints lies in files of the test bed's folder, which both kernels see.
"""
