"""The text of haproxy.cfg as lines of words with their places, and the outcome of each line."""
