"""The health of servers over time: when they are checked, and the verdicts and weights that result."""
