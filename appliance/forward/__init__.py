"""The parts of the program `forward`: its inputs, the kernel's rules, its commands."""
