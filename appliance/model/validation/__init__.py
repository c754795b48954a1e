"""What pydantic says of single keys, in words for the operator."""
