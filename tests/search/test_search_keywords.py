"""Keywords of SearchQA that cannot be, or mean nothing where they stand, are refused by name."""

import re
from typing import Any

import numpy as np
import pytest

from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.games.search.search_qa import game

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
        ({"form": "text", "prompt": "{question:{turns}}"}, "give a width of up to 1000"),
        ({"form": "text", "prompt": "{question}" + "x" * 100_000}, "at most 100000 are possible"),
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


def test_rows_of_two_worlds_can_be_mixed():
    """A table of the questions of both has None where the rows of one have no value."""
    alone = registry.make_game("palaestra/SearchQA-2Hop-v0", form="text")[0]
    mixed = registry.make_game("palaestra/SearchQA-2Hop-v0", form="text", split=None, hops=None, world=None)[0]
    assert rules_digest(mixed) == rules_digest(alone)


@pytest.mark.parametrize("hops", ["2", 2.5, (1, 2, 3), (2, None), [3, 1], 0, True])
def test_wrong_hops_are_told_with_the_choices(hops: Any):
    with pytest.raises(
        ValueError, match=r"hops \(a number, or the fewest and the most\) must be an integer from \d to 4"
    ):
        registry.make_game("palaestra/SearchQA-2Hop-v0", hops=hops)
    assert registry.make_game("palaestra/SearchQA-2Hop-v0", hops=np.int64(3))[0].horizon == 4
