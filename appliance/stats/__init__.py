"""The parts of the program `stats`: what it has seen, what it shows of it, and how it is asked."""
