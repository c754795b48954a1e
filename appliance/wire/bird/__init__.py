"""BIRD 2: its configuration, and the answers on its control socket."""
