"""The health of servers over time: when they are checked, and what the results make of verdict and weight."""
