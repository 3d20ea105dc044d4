"""One package for each RFC procedure; each is given the function that measures as an argument."""
