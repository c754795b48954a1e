"""The properties that a virtual machine gets from outside: the form, and the meaning of its fields."""
