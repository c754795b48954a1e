"""How the kernel handles the connections of frontends that it forwards: slots, numbers, rules."""
