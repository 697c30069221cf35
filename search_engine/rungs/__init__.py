"""The rungs of the ladder, one file each; the order stands in the registry."""
