"""What a process is: its capabilities, its scheduling, its output, its orphans."""
