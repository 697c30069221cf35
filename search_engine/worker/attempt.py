"""Run code of the user's and keep what it raises as a value."""

from __future__ import annotations


class Attempt:
    """A context that ends quietly; ``error`` is what was raised in it, or None.

    Keyboard interrupts and the end of the interpreter pass through.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if isinstance(error, (Exception, SystemExit)):
            self.error = error
            return True
        return False
