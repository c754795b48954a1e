"""The properties that a virtual machine is given from outside (OVF), and the files that are made of them."""
