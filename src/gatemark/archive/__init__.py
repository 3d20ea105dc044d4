"""A result folder as one file that somebody else can verify and measure again: what it holds, making and reading it.

::

    NAME/...                      the result folder, of a campaign or of a series
    NAME/archive/archive.json     what the archive is, and which files the campaign names
    NAME/archive/inputs/*.toml    those files: recipes, commands
    NAME/SHA256SUMS               the SHA-256 of every other file, as `sha256sum --check` reads it
"""
