"""The accepted configuration that programs read, and what differs between two of them."""
