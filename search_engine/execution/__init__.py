"""Executors run jobs in workers; the wire is the only module shared with them."""
