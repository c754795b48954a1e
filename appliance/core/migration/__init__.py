"""Sessions that move to another node: who has a batch, at every moment."""
