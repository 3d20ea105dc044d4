"""One module for each RFC procedure; each gets its way to measure as an argument."""
