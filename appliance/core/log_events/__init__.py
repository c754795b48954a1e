"""What each warning and error in the log means, and what an operator does about it."""
