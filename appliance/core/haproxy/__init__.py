"""What the appliance does, in HAProxy's terms: rows of its statistics, its counters, its states."""
