"""Why frames were lost: a fourth question after report, validity, verdict and suspicion. Pure.

A cause is asked of valid trials that failed, and changes no verdict. Each has a module: its rule, its sentence, and
what chance could do instead.
"""
