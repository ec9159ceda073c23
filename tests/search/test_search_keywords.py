"""Keywords of SearchQA that cannot be, or mean nothing where they stand, are refused by name."""

import inspect
import re
from typing import Any

import pytest

from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.games.search.search_qa import game

pytestmark = pytest.mark.check

LOUD = {"aliases": 1.0, "near_duplicates": 1.0, "stale": 1.0, "contradicting": 1.0}


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"relations": 1}, "relations=2"),
        ({"world": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"world": "example", "form": "structured"}, "structured"),
        ({"world": "stdlib"}, "world='stdlib': give 'fresh', 'fixed', 'example', or a file of passages"),
        ({"split_by": "first_entity"}, "split_by='first_entity' means nothing with world='fresh'"),
        ({"strict": True}, "strict=True means nothing with world='fresh'"),
        ({"form": "text", "prompt": "{question:>1000}" * 2000}, "with the longest question it has 3024000 characters"),
        ({"judge": (1, 2)}, "judge"),
        ({"form": "text", "prompt": "hello"}, "prompt"),
        ({"form": "text", "prompt": "{question:>999999999}"}, "give a width of up to 1000"),
        ({"form": "text", "prompt": "{question} {x}"}, "prompt"),
        ({"form": "text", "prompt": "{question:{turns}}"}, "give a width of up to 1000"),
        ({"form": "text", "prompt": "{question}" + "x" * 100_000}, "at most 100000 are possible"),
        (
            {"world": "fixed", "passages": 100, "hops": 4, "split": "test", "near_duplicates": 1.0, **LOUD},
            "no question",
        ),
        ({"world": "fixed", "relations": 4}, "relations=4 means nothing"),
        ({"split": "test"}, "split='test' means nothing"),
        ({"world": "example", "hops": 3}, "hops=3 means nothing"),
        ({"compare": True, "hops": 3}, "hops=3 means nothing"),
        ({"prompt": "plain"}, "prompt='plain' means nothing"),
    ],
)
def test_wrong_keywords_are_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        game(**keywords)


@pytest.mark.parametrize("id", ["SearchQA-2Hop-v1", "SearchQA-Noisy-v1", "MathText-Arith-v1"])
def test_rows_of_two_worlds_can_be_mixed(id: str):
    """A table of the questions of both has None where the rows of one have no value, whatever the keyword."""
    game, _ = registry.make_game(f"palaestra/{id}", form="text")
    factory = registry.factories.load(registry.row(f"palaestra/{id}").factory)
    names = {*inspect.signature(factory).parameters, *(p.name for p in game.parameters)} - {"form"}
    mixed, parameters = registry.make_game(f"palaestra/{id}", form="text", **dict.fromkeys(names))
    assert (rules_digest(mixed), parameters) == (rules_digest(game), {})
    assert registry.refused_keyword(f"palaestra/{id}", dict.fromkeys(names)) is None
