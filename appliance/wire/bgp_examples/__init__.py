"""What another BGP daemon of this machine needs, to announce the routes in the two tables of the kernel."""
