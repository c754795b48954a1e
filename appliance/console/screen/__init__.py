"""The screen of a virtual machine's console."""
