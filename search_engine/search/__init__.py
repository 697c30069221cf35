"""The search tree: deterministic from its seed, no I/O, no clock."""
