"""Conversion to and from LSP types; the protocol subclass and its transport."""
