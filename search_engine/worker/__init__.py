"""The separate program that runs in the user's interpreter and executes candidates."""
