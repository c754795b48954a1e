"""`appliance top`: the terminal's screen, keys and signals, around the logic in `core.top`."""
