"""`gatemark calibrate`: every procedure measures a gateway whose true values are known."""
