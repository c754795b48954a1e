"""The parts of the program `linger`: addresses that are kept, reports between nodes, rules of the kernel."""
