"""Trained agents that ship with the package, as data."""
