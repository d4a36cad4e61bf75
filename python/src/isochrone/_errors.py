"""What goes wrong, in the words of the command and of the C library."""

from __future__ import annotations


class Error(Exception):
    """Something could not be done; the words say what, and what to do.

    `code` is the command's exit code, or the C library's number.
    """

    def __init__(self, words: str, code: int = 1) -> None:
        super().__init__(words)
        self.code = code


class UsageError(Error, ValueError):
    """An argument makes no sense, and nothing was done."""


class NotInstalledError(Error):
    """A part of this package is not where the installer has put it."""
