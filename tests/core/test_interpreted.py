"""Compiled or not, on one processor or another: the same source gives bitwise equal results.

``compiled=False`` interprets the rules of one simulation, ``NUMBA_DISABLE_JIT=1`` those of a process. Most tests of the
core are cheap enough for the latter (marker `jitless`), where an index outside an array is an error.
"""

import copy
import dataclasses
import importlib
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import pytest
from games import body_game, duel, two_team, two_team_homogeneous
from games.play import all_bytes, idle_actions, match_hash, python, random_actions

import palaestra
from palaestra.core.compile import compiler
from palaestra.core.compile.linker import jit_disabled, link
from palaestra.core.rng import GOLDEN, mix64
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.workers import ProcessSimulation
from palaestra.game import Choice, Field, Game, Role, integer

HASH = "import sys; from games.play import match_hash; print(match_hash(sys.argv[1], int(sys.argv[2])))"
compares = pytest.mark.skipif(jit_disabled(), reason="compares with compiled kernels")


TWINS = ["two_team", "two_team_homogeneous"]
INTERPRETED = """
import json, sys
from games import two_team_homogeneous as melee
from games.play import match_hash
from palaestra.core.run.kernel import KernelSimulation
said = {name: match_hash(name, 120) for name in sys.argv[1:]}
said["numba"] = "numba" in sys.modules
melee.observe = lambda s, world, observations, scratch: s.hit_points[melee.POINTS]
try:
    KernelSimulation(melee.game(), 1).reset(seed=1)
except IndexError:
    said["outside"] = "found"
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def interpreted() -> dict[str, Any]:
    """What a process that interprets all rules says: one process answers several tests."""
    return json.loads(python(INTERPRETED, *TWINS, NUMBA_DISABLE_JIT="1"))


@pytest.mark.check
@compares
@pytest.mark.parametrize("name", TWINS)
def test_the_interpreted_twin_gives_the_same_bits(interpreted: dict[str, Any], name: str):
    assert interpreted[name] == match_hash(name, 120)


@pytest.mark.check
@compares
def test_a_plain_processor_gives_the_same_bits(tmp_path):
    cartpole = "palaestra.games.calibration.cartpole"
    generic = python(HASH, cartpole, "200", NUMBA_CPU_NAME="generic", NUMBA_CACHE_DIR=str(tmp_path))
    assert generic == match_hash(cartpole, 200)


def assert_the_same_bits(sim: Simulation, twin: Simulation, decisions: int) -> None:
    """Random actions against a script drawn for each match, then idle ones, to the global state and the records."""
    assert (sim.compiled, twin.compiled) == (False, True)
    for one in (sim, twin):
        if len(one.game.teams) > 1 and one.game.scripts:
            one.set_opponent(list(one.game.teams)[1], "mix")
        one.reset(seed=7)
    rng = np.random.default_rng(7)
    for _ in range(decisions):
        actions = random_actions(sim, rng)
        for one in (sim, twin):
            one.step(actions)
        np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))
        np.testing.assert_array_equal(sim.state(), twin.state())


@pytest.mark.check
@compares
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("name", ["two_team", "orchard", "size_game", "body_game"])
def test_an_interpreted_simulation_gives_the_bits_of_a_compiled_one(
    rules: Callable[..., Simulation], name: str, mode: str
):
    game = importlib.import_module(f"games.{name}").game()
    kind = KernelSimulation if game.physics is None else PhysicsSimulation
    assert_the_same_bits(rules(game, 2, autoreset_mode=mode), kind(game, 2, autoreset_mode=mode), 40)


@pytest.mark.check
@compares
@pytest.mark.parametrize("id", ["palaestra/UcavTrack-v3", "palaestra/UcavPursuit-v2"])
def test_an_interpreted_batch_beside_an_engine_gives_the_bits_of_a_compiled_one(
    rules: Callable[..., Simulation], id: str
):
    """The conformance kit compares the rules of all other ids, each kernel once."""
    pytest.importorskip("jsbsim")
    sim, twin = rules(id, 2), palaestra.make_batch(id, 2)
    with closing(twin):
        assert_the_same_bits(sim, twin, 12)


def outside(s: Any, world: Any, observations: Any, scratch: Any) -> None:
    """Reads beyond the last slot."""
    observations.fighter[0].energy = s.energy[len(s.energy)]


def looking_outside() -> Game:
    return dataclasses.replace(two_team.game(), observe=outside)


@pytest.mark.jitless
def test_an_index_outside_its_array_is_an_error(rules: Callable[..., Simulation]):
    sim = rules(looking_outside())
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        sim.reset(seed=1)


@compares
@pytest.mark.parametrize("make", [two_team.game, body_game.game], ids=["kernel", "engine"])
def test_nothing_is_compiled(
    rules: Callable[..., Simulation], make: Callable[..., Game], monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the compiler was called")

    for name in ("options", "compile_cached"):
        monkeypatch.setattr(compiler, name, refuse)
    monkeypatch.setattr(compiler.Inside, "compile", refuse)
    sim = rules(make())
    sim.reset(seed=1)
    for _ in range(3):
        sim.step(idle_actions(sim))
    sim.state()
    with pytest.raises(AssertionError, match="the compiler was called"):
        link(sim.game)


@pytest.mark.check
def test_an_interpreted_simulation_does_without_numba():
    program = """
import sys
from games import two_team
from games.play import idle_actions
from palaestra.core.run.kernel import KernelSimulation
sim = KernelSimulation(two_team.game(), 1, compiled=False)
sim.reset(seed=1)
sim.step(idle_actions(sim))
print("numba" in sys.modules)
"""
    assert python(program, NUMBA_DISABLE_JIT=None) == "False"


@compares
def test_two_twins_live_in_one_process_and_copies_stay_what_they_are(rules: Callable[..., Simulation]):
    game = duel.game()
    compiled, sim = KernelSimulation(game, 2), rules(game, 2)
    assert (link(game).compiled, link(game, compiled=False).compiled) == (True, False)
    for one in (compiled, sim):
        one.reset(seed=3)
    twin = copy.deepcopy(sim)
    assert not twin.compiled
    twin.restore(compiled.snapshot())
    np.testing.assert_array_equal(all_bytes(twin), all_bytes(compiled))


@pytest.mark.check
def test_workers_interpret_too():
    sim = ProcessSimulation(two_team_homogeneous.game(), 2, workers=1, compiled=False)
    one = KernelSimulation(sim.game, 2, compiled=False)
    for each in (sim, one):
        each.reset(seed=1)
        each.step(idle_actions(one))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(one))
    sim.close()


def test_the_interpreted_twin_finds_an_index_outside_its_array(interpreted: dict[str, Any]):
    assert interpreted["outside"] == "found"


def test_the_interpreted_twin_does_without_numba(interpreted: dict[str, Any]):
    assert interpreted["numba"] is False


class Shop(NamedTuple):
    """A world with records, also in a tuple."""

    goods: np.ndarray
    more: tuple[np.ndarray, int]


def start_to_buy(s, world):
    s.spent = world.goods[0].price


def buy(s, world, actions, rewards, scratch):
    rewards[0] = world.goods[actions.buyer[0].good].price + world.more[0][1].price
    return 0


@pytest.mark.check
@compares
def test_records_of_the_world_have_attributes_compiled_or_not():
    goods = np.array([(1.5, 2), (4.0, 1)], [("price", "f8"), ("count", "i8")])
    buyer = Role("buyer", ("red_0",), (Field("spent", (), 0, 9),), (Choice("good", 2),))
    game = Game(
        name="Shop",
        roles=(buyer,),
        state=(("spent", "f8"),),
        reset=start_to_buy,
        step=buy,
        observe=watch,
        horizon=5,
        world=Shop(goods, (goods, 3)),
    )
    for is_compiled in (False, True):
        with closing(KernelSimulation(game, 2, compiled=is_compiled)) as sim:
            sim.reset(seed=1)
            sim.step(np.array([[0], [1]]))
            assert sim.rewards[:, 0].tolist() == [5.5, 8.0]


def watch(s, world, observations, scratch):
    observations.buyer[0].spent = s.spent


def draw_bit(s):
    """From a stream of the game's own, which it advances itself."""
    s.spent = np.float64(mix64(np.uint64(2**63) + GOLDEN * np.uint64(3)) >> np.uint64(63))


def cost_of_200(s, world, actions, rewards, scratch):
    draw_bit(s)
    rewards[0] = world.goods[integer(s, 1)].price * 200
    return 0


@pytest.mark.jitless
def test_a_number_of_a_narrow_table_that_overflows_as_plain_python_warns_with_its_line(
    rules: Callable[..., Simulation],
):
    """Compiled, it is computed in 64 bits. Random streams, which wrap around by design, do not warn."""
    goods = np.array([(200, 2)], [("price", "i2"), ("count", "i8")])
    buyer = Role("buyer", ("red_0",), (Field("spent", (), 0, 9),), (Choice("good", 2),))
    game = Game(
        name="Goods",
        roles=(buyer,),
        state=(("spent", "f8"),),
        reset=start_to_buy,
        step=cost_of_200,
        observe=watch,
        horizon=5,
        world=Shop(goods, (goods, 3)),
    )
    sim = rules(game)
    sim.reset(seed=1)
    with pytest.warns(RuntimeWarning, match="overflow encountered in scalar multiply") as warned:
        sim.step(np.array([[0]]))
    assert [(each.filename, each.lineno) for each in warned] == [(__file__, cost_of_200.__code__.co_firstlineno + 2)]
