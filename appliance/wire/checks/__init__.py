"""What a check sends to a server and expects from it, byte by byte."""
