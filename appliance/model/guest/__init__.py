"""What a virtual machine is told from outside: the form, and what its fields amount to."""
