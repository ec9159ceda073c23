"""Command lines of dataclasses and functions, by tyro; their help is in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def read_arguments(
    kind: Callable[..., Any], words: Sequence[str] | None, program: str, about: str | None = None
) -> Any:
    """What tyro makes of the words of a command line; ``--help`` shows the docstrings without their markup.

    Args:
        kind: A dataclass or function: its parameters are the options, its docstring describes them.
        words: Those of the process if None.
        program: What the usage calls it.
        about: First words of the help; those of the docstring if None.

    Returns:
        What ``kind`` returned.

    Raises:
        SystemExit: After ``--help``, and after a word that is no option: the message names it.
    """
    import tyro

    marked = {each: each.__doc__ for each in getattr(kind, "__mro__", (kind,)) if "`" in (each.__doc__ or "")}
    try:
        for each, text in marked.items():
            each.__doc__ = str(text).replace("`", "")
        return tyro.cli(kind, args=words, prog=program, description=None if about is None else about.replace("`", ""))
    finally:
        for each, text in marked.items():
            each.__doc__ = text
