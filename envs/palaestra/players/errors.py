"""Errors of other libraries in one line."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its name; 200 characters at most, and none that a terminal obeys."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = lines[0][:200]
    return text if text.isprintable() else repr(text)[1:-1]
