"""Findings about a kernel, one file each: facts in, one finding out."""
