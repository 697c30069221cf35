"""One file per finding: a pure check of what the compiler and the launches say about a unit."""
