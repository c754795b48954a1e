"""The parts of the program `vrrp`: VRRP instances in their groups, reloads, commands and reports."""
