"""What another BGP daemon of this machine needs, to announce what stands in the two tables of the kernel."""
