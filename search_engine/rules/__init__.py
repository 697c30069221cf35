"""Deterministic rewrite rules, one file each."""
