"""What a virtual machine is told from outside, and what it does with it."""
