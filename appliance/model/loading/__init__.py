"""How the text of a configuration becomes a snapshot, with all defaults filled in."""
