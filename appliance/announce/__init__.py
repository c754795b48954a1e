"""The addresses that all nodes serve, and what routers learn about them."""
