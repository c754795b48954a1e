"""The addresses of virtual routers: put on an interface, removed, and looked for elsewhere."""
