"""How programs start: their log, lock, signals, heartbeat and control socket."""
