"""Pure functions of a file's state: what the editor shows and offers."""
