"""Accelerators: one file each, every figure with its source."""
