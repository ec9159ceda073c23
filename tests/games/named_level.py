"""A factory that declares which of its options names files: the guide to games shows it."""

from pathlib import Path
from typing import Any

from palaestra.game import Option, any_text, with_options


@with_options(
    Option("level", "meadow", "a level of ours, or the path of a file", texts=("meadow", "maze")),
    Option("greeting", "", "what is said first", texts=any_text),
    Option("size", 3, "cells of a side", low=2, high=9),
)
def named_level(options: Any) -> Any:
    """A factory of games; this one reads a file."""
    return options.level if options.level in ("meadow", "maze") else Path(options.level).read_text()
