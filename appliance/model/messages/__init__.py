"""What is wrong with a configuration, in words for the operator."""
