"""The accepted configuration that programs read, and the differences between two of them."""
