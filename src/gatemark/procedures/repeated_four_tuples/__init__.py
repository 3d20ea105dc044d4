"""Rate of frames whose four-tuples are drawn at random and repeat: a procedure of no RFC."""
