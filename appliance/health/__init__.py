"""The parts of the program `health`: checks, log, kept operator states, commands."""
