"""Examples, one library each."""
