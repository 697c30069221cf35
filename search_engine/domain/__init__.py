"""Frozen values of the vocabulary. Nothing here executes anything; standard library only.

The files of this package are staged into the worker, so they must run on Python 3.10 to 3.14.
"""
