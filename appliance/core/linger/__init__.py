"""Which connections of a virtual IP live on which node after it has moved, and how packets get there."""
