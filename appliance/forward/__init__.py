"""The parts of the program `forward`: what it looks at, the kernel's rules, its commands."""
