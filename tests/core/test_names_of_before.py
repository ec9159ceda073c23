"""What stood elsewhere before families had a room of their own is found there, and is no second copy."""

import importlib
import pickle

import pytest

from palaestra.games import MOVED


@pytest.mark.parametrize("before", MOVED)
def test_a_module_is_found_under_its_name_of_before(before: str):
    module = importlib.import_module(before)
    assert module is importlib.import_module(MOVED[before])
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == MOVED[before]


def test_what_is_in_a_module_of_before_is_the_same():
    from palaestra.search import Index  # pyright: ignore[reportMissingImports]
    from palaestra.search.index import Index as SameIndex  # pyright: ignore[reportMissingImports]

    from palaestra.games.search.index import Index as TheIndex

    assert Index is SameIndex is TheIndex
    assert pickle.loads(b"cpalaestra.search.index\nIndex\n.") is TheIndex


@pytest.mark.parametrize("name", ["palaestra.nothing", "palaestra.teams.nothing", "palaestra.searching"])
def test_what_has_never_been_there_is_missing(name: str):
    with pytest.raises(ModuleNotFoundError, match=r"nothing|searching"):
        importlib.import_module(name)
