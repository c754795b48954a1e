"""The parts of the program `redirect`: its inputs, the rules it makes, its log, its commands."""
