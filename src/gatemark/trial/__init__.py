"""One trial: what is asked of the engine, what it reports, whether to believe it, whether it meets the goal."""
