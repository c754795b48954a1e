"""What each warning and error of the log means, and what an operator does about it."""
