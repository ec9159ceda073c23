"""Keywords of SearchQA that cannot be, or mean nothing where they stand, are refused by name."""

import re
from typing import Any

import pytest

from palaestra.search.search_qa import game

LOUD = {"aliases": 1.0, "near_duplicates": 1.0, "stale": 1.0, "contradicting": 1.0}


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"form": "tekst"}, "form"),
        ({"hops": 5}, "hops"),
        ({"hops": (3, 2)}, "hops"),
        ({"relations": 1}, "relations=2"),
        ({"entities": 8}, "entities"),
        ({"world": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"world": "stdlib", "form": "structured"}, "structured"),
        ({"aliases": 1.5}, "aliases"),
        ({"judge": (1, 2)}, "judge"),
        ({"split": "dev"}, "split"),
        ({"max_turns": 129}, "max_turns"),
        ({"form": "text", "prompt": "hello"}, "prompt"),
        ({"form": "text", "prompt": "{question:>999999999}"}, "give a width of up to 1000"),
        ({"form": "text", "prompt": "{question} {x}"}, "prompt"),
        ({"form": "text", "prompt": "{question:>9999999999}"}, "a field is thousands of characters wide"),
        ({"form": "text", "prompt": "{question:{turns}}"}, "a field is thousands of characters wide"),
        ({"form": "text", "prompt": "{question}" + "x" * 70_000}, "give 65536 or fewer"),
        ({"world": "fixed", "passages": 99}, "passages"),
        (
            {"world": "fixed", "passages": 100, "hops": 4, "split": "test", "near_duplicates": 1.0, **LOUD},
            "no question",
        ),
        ({"world": "fixed", "relations": 4}, "relations=4 means nothing"),
        ({"split": "test"}, "split='test' means nothing"),
        ({"world": "stdlib", "hops": 3}, "hops=3 means nothing"),
        ({"prompt": "plain"}, "prompt='plain' means nothing"),
        ({"world": "example", "split": "train", "hops": 0}, "hops"),
    ],
)
def test_wrong_keywords_are_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        game(**keywords)
