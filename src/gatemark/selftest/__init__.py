"""`gatemark selftest`: what the Tester alone can do, with its ports joined to each other."""
