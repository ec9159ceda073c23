"""Every script of every id plays the same match compiled and as plain Python: no number of a narrow table overflows.

``pytest -m slow tests/testing/test_plain_python.py`` plays all ids, and what their factories' choices make of them.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from palaestra import registry
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.contract import factories
from palaestra.core.run.simulation import Simulation
from palaestra.testing.snapshot_view import snapshot_view

pytestmark = pytest.mark.skipif(jit_disabled(), reason="compares with compiled kernels")

OURS = [id for id in registry.ROWS if id.startswith("palaestra/")]
QUICK = ("TeamTag-v0", "GraphPursuit-Grid10-v0", "LLMEnsemble-v0")
"""Of the others the conformance kit plays one script, drawn at random."""
TURNS = 1500
"""Turns of an agent that are played for an id: its plain Python takes some milliseconds each."""


def assert_scripts_play_alike(id: str, keywords: dict[str, Any], most: int = 20) -> None:
    """A lane for each script, which plays all teams; their bytes are compared after each decision."""
    scripts = registry.make_game(id, **keywords)[0].scripts
    if not scripts:
        return
    lanes = len(scripts)
    make = registry.make_batch
    with (
        closing(make(id, lanes, **keywords)) as compiled,
        closing(make(id, lanes, compiled=False, **keywords)) as plain,
    ):
        assert (compiled.compiled, plain.compiled) == (True, False)
        for sim in (compiled, plain):
            for lane, name in enumerate(scripts):
                for team in sim.game.teams:
                    sim.set_opponent(team, name, lanes=[lane])
            sim.reset(seed=5)
        for decision in range(min(most, max(4, TURNS // (lanes * len(compiled.game.agents))))):
            one, other = ({**snapshot_view(sim), **_written(sim)} for sim in (compiled, plain))
            differ = {
                (name, scripts[lane])
                for name in one
                for lane in range(len(scripts))
                if one[name][lane].tobytes() != other[name][lane].tobytes()
            }
            assert not differ, f"after {decision} decisions"
            for sim in (compiled, plain):
                sim.step()


def _written(sim: Simulation) -> dict[str, Any]:
    return {name: sim.states[name] for name, *_ in sim.game.state} | {"chosen": sim.buffers.action_words}


@pytest.mark.check
@pytest.mark.parametrize("name", QUICK)
def test_every_script_plays_alike(name: str):
    assert_scripts_play_alike(f"palaestra/{name}", {}, most=2)


@pytest.mark.slow
@pytest.mark.parametrize("id", OURS)
def test_every_script_of_every_id_plays_alike(id: str):
    try:
        registry.make_game(id)
    except ImportError as error:
        pytest.skip(str(error))
    assert_scripts_play_alike(id, {})


def choices(factory: Any) -> list[dict[str, Any]]:
    """Each word and flag of the keywords of a factory."""
    found = []
    for name, hint in get_type_hints(factories.load(factory)).items():
        for part in (hint, *get_args(hint)):
            words = get_args(part) if get_origin(part) is Literal else (True, False) if part is bool else ()
            found += [{name: word} for word in words]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("id", {str(registry.ROWS[id].factory): id for id in reversed(OURS)}.values())
def test_every_script_plays_alike_whatever_is_chosen(id: str):
    """The first id of each factory with each word of its keywords that goes with the defaults of the others."""
    for keywords in choices(registry.ROWS[id].factory):
        try:
            registry.make_game(id, **keywords)
        except ImportError as error:
            pytest.skip(str(error))
        except ValueError:
            continue
        assert_scripts_play_alike(id, keywords)
