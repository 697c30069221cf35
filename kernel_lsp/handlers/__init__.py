"""One LSP message per file: decode, take a snapshot, call one feature, encode."""
