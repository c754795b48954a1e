"""What a proxy master holds: listening sockets, worker processes and generations."""
