"""What a check says to a server and expects of it, byte by byte."""
