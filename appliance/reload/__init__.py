"""A new configuration on its way: from the first step of a start and the line `reload` to all programs."""
