"""What the trials of libraries for language models say in a search environment."""

from __future__ import annotations

import json
from typing import Any

ID = "palaestra/SearchQA-2Hop-v1"
SEARCH, WRONG = "<search>the mayor</search>", "<answer>nobody at all</answer>"


def right(info: dict[str, Any]) -> str:
    """The turn that answers the question of an info."""
    return f"<answer>{info['answers'][0]}</answer>"


def check_alike(one: Any, other: Any, third: Any) -> None:
    """Two episodes of one seed are equal, in JSON too, and that of another seed is not."""
    assert json.dumps(one) == json.dumps(other)
    assert one == other == json.loads(json.dumps(one))
    assert one != third
