"""The parts of the program `linger`: kept addresses, reports between nodes, and kernel rules."""
