"""Keywords of a factory that no game can be made from."""

from typing import Any

import pytest

from palaestra.core.keywords import check_count, check_word


def test_a_word_that_is_no_choice_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"^reward must be one of 'dense', 'sparse', got 'shaped'$"):
        check_word("reward", "shaped", ("dense", "sparse"))
    check_word("reward", "sparse", ("dense", "sparse"))


@pytest.mark.parametrize("count", [0, 17, 2.0, "2", None])
def test_what_is_no_integer_in_the_range_is_refused_with_the_range(count: Any):
    with pytest.raises(ValueError, match=f"^agents must be an integer from 1 to 16, got {count!r}$"):
        check_count("agents", count, 1, 16)


@pytest.mark.parametrize("count", [1, 16])
def test_both_ends_of_the_range_are_allowed(count: int):
    check_count("agents", count, 1, 16)
