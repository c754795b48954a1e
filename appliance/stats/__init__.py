"""The parts of the program `stats`: the data it collects, the pages it serves, and its command line."""
