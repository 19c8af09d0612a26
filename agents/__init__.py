"""Agents: heuristics, networks, checkpoints."""
