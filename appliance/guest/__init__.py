"""The properties that a virtual machine gets from outside (OVF), and the files made from them."""
