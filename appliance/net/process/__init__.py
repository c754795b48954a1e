"""Properties of processes: capabilities, scheduling, output, orphans."""
