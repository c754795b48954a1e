"""Control sockets: one question and one answer at a time, with and without greenlets."""
