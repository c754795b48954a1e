"""What the kernel does with the connections of frontends that it forwards: slots, numbers, rules."""
