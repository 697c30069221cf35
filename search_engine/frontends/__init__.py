"""Turns source text into kernels, launches, units and workloads; tolerant of broken text."""
