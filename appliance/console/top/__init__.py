"""`appliance top`: the screen of a terminal, its keys and signals, around what `core.top` decides."""
