"""When connections to another program's port are redirected to ours, and by which rules of the kernel."""
