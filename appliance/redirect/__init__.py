"""The parts of the program `redirect`: what it looks at, the rules it makes, its log, its commands."""
