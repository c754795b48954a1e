"""Which node has which connections of a virtual IP that has moved, and how packets reach that node."""
