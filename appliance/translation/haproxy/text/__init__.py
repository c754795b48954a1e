"""The text of haproxy.cfg as lines of words, each with its place, and what became of each line."""
