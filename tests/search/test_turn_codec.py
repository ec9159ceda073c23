"""Turns of the text form: what is written of an action is read as that action."""

from typing import Any

import pytest

from palaestra import registry

pytestmark = pytest.mark.check


@pytest.mark.parametrize("turn", ["<search>mayor birthplace</search>", "<answer>mayor</answer>", ""])
def test_a_turn_of_numbers_is_written_as_it_is_read(turn: str) -> None:
    codec: Any = registry.make_game("palaestra/SearchQA-2Hop-v1", form="text")[0].codecs["text"]
    said = codec.decode(None, turn)
    written = codec.encode_action(None, said)
    assert (codec.decode(None, written) == said).all()
    assert written.partition(">")[0] == turn.partition(">")[0]


def test_a_word_that_is_in_no_vocabulary_is_not_written() -> None:
    codec: Any = registry.make_game("palaestra/SearchQA-2Hop-v1", form="text")[0].codecs["text"]
    with pytest.raises(ValueError, match="in no vocabulary"):
        codec.encode_action(None, codec.decode(None, "<search>zzz</search>"))
