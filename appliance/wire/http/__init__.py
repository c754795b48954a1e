"""The parts of HTTP/1 that health checks and fixed answers need."""
