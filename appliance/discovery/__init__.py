"""The parts of the program `discover`."""
