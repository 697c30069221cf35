"""Append-only store of evaluations and runs."""
