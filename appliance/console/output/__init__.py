"""How values are written on a terminal."""
