"""conntrackd of conntrack-tools: its configuration, and what it answers."""
