"""Compiled games are kept on disk, and never loaded after a change of anything that they depend on."""

import importlib.util
import os
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from games import two_team
from games.play import python

from palaestra.core.compile.linker import jit_disabled, link
from palaestra.game import Game

pytestmark = pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")

RULES = """
from palaestra.game import Choice, Field
from palaestra.game import Game, Role
from tools import GAIN, HELD, bonus
import tools
{extra}
def reset(s, world):
    s.x = 0.0

def step(s, world, actions, rewards, scratch):
    s.x += GAIN + bonus(s.x) + HELD[1] + tools.OFFSET {more}
    return False

def observe(s, world, observations, scratch):
    observations.runner[0].x = s.x

def game():
    role = Role("runner", ("red_0",), (Field("x", (), -1e9, 1e9),), (Choice("go", 2),))
    return Game(name="Tiny", roles=(role,), state=(("x", "f8"),), reset=reset, step=step, observe=observe)
"""
TOOLS = """
import numpy as np
GAIN = 1.0
HELD = np.array([0.0, 10.0])
OFFSET = 100.0
def bonus(x):
    return 1000.0
"""
PLAY = """
from rules import game
from palaestra.core.run.kernel import KernelSimulation
sim = KernelSimulation(game(), 1)
sim.reset(seed=1)
sim.step([[0]])
print(sim.states["x"][0], sum(sum(d.stats.cache_hits.values()) for d in sim.kernel.drivers.values()))
"""


def write(folder: Path, tools: str = TOOLS, extra: str = "", more: str = "") -> None:
    (folder / "rules.py").write_text(RULES.format(extra=extra, more=more))
    (folder / "tools.py").write_text(tools)


@pytest.mark.check
def test_an_edit_elsewhere_is_compiled_anew_and_another_process_compiles_nothing(tmp_path: Path):
    """The second process plays twice: an interpreter that imports the compiler takes as long as a kernel."""
    path = os.pathsep.join([str(tmp_path), *(p for p in sys.path if p)])
    places: dict[str, str | None] = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": None}
    edited = TOOLS.replace("GAIN = 1.0", "GAIN = 2.0")
    write(tmp_path)
    assert python(PLAY, **places).split() == ["1111.0", "0"]
    write(tmp_path, edited)
    restore = f"""
import pathlib, sys
pathlib.Path({str(tmp_path / "tools.py")!r}).write_text({TOOLS!r})
del sys.modules["rules"], sys.modules["tools"]
"""
    # The old one is still there: one driver, which plays, resets and shows.
    assert python(PLAY + restore + PLAY, **places).split() == ["1112.0", "0", "1111.0", "1"]


def load(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Game:
    """The game of the files in a folder as they stand now."""
    for name in ("tools", "rules"):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return sys.modules["rules"].game()


NESTED = TOOLS + "import types\ninner = types.ModuleType('inner')\ninner.DEEP = {}\n"
CLOSURE = "def make(k):\n    return lambda: k\nmore = make({})"
ENUM = "import enum\nKind = enum.IntEnum('Kind', {{'HOLD': 0, 'FIRE': {}}})\n"
TWICE = TOOLS + "def twice(x):\n    return 2000.0\n"
MORE_NAMES = "from tools import twice, bonus as {}, twice as {}"  # of functions that are called already
UFUNC = TOOLS + "import numba\n@numba.vectorize{}\ndef up(x):\n    return {}\n"
EDITS = {
    "a constant": {"tools": TOOLS.replace("GAIN = 1.0", "GAIN = 2.0")},
    "its type": {"tools": TOOLS.replace("GAIN = 1.0", "GAIN = 1")},
    "an array": {"tools": TOOLS.replace("10.0]", "11.0]")},
    "the type of an array": {"tools": TOOLS.replace("10.0])", "10.0], np.float32)")},
    "a member of a module": {"tools": TOOLS.replace("OFFSET = 100.0", "OFFSET = 101.0")},
    "the body of a helper": {"tools": TOOLS.replace("return 1000.0", "return 1000.0 * x")},
    "a number in the body of a helper": {"tools": TOOLS.replace("return 1000.0", "return 1001.0")},
    "a default of a helper": {"tools": TOOLS.replace("def bonus(x):", "def bonus(x, y=1):")},
    "a helper that its author compiled": {"tools": TOOLS.replace("def bonus", "import numba\n@numba.njit\ndef bonus")},
    "the middle of a long table": {"extra": "LONG = (tools.np.arange(5000.0),)", "more": "+ LONG[0][1]"},
    "another middle": {"extra": "LONG = (tools.np.arange(5000.0),)\nLONG[0][2500] = 1", "more": "+ LONG[0][1]"},
    "a module in a module": {
        "tools": TOOLS + "import fractions\nfractions.DEEP = 1\n",
        "more": "+ tools.fractions.DEEP",
    },
    "a constant in there": {
        "tools": TOOLS + "import fractions\nfractions.DEEP = 2\n",
        "more": "+ tools.fractions.DEEP",
    },
    "a closure": {"extra": CLOSURE.format(1), "more": "+ more()"},
    "another closure": {"extra": CLOSURE.format(2), "more": "+ more()"},
    "a member of an enumeration": {"tools": TOOLS + ENUM.format(3), "more": "+ tools.Kind.FIRE"},
    "another value of it": {"tools": TOOLS + ENUM.format(4), "more": "+ tools.Kind.FIRE"},
    "a helper in a module": {"tools": TOOLS + "def half(x):\n    return x / 2\n", "more": "+ tools.half(s.x)"},
    "its code": {"tools": TOOLS + "def half(x):\n    return x / 3\n", "more": "+ tools.half(s.x)"},
    "a table of functions": {"extra": "TABLE = (bonus, min)", "more": "+ TABLE[0](s.x)"},
    "two more names": {"extra": MORE_NAMES.format("y", "z"), "tools": TWICE, "more": "+ twice(s.x) + y(s.x) - z(s.x)"},
    "the same exchanged": {
        "extra": MORE_NAMES.format("z", "y"),
        "tools": TWICE,
        "more": "+ twice(s.x) + y(s.x) - z(s.x)",
    },
    "a keyword default": {"tools": TOOLS.replace("def bonus(x):", "def bonus(x, *, y=1):")},
    "another keyword default": {"tools": TOOLS.replace("def bonus(x):", "def bonus(x, *, y=2):")},
    "what its author compiled it with": {
        "tools": TOOLS.replace("def bonus", "import numba\n@numba.njit(fastmath=True)\ndef bonus")
    },
    "a function of numbers made a function of arrays": {"tools": UFUNC.format("", "x"), "more": "+ tools.up(s.x)"},
    "its body": {"tools": UFUNC.format("", "x + 1.0"), "more": "+ tools.up(s.x)"},
    "its types": {"tools": UFUNC.format("(['f8(f8)'])", "x"), "more": "+ tools.up(s.x)"},
    "other types": {"tools": UFUNC.format("(['f4(f4)'])", "x"), "more": "+ tools.up(s.x)"},
    "what it calls": {"tools": UFUNC.format("", "x + bonus(x) + GAIN"), "more": "+ tools.up(s.x)"},
    "a complex number": {"tools": TOOLS + "TURN = 1j\n", "more": "+ tools.TURN.imag"},
    "another complex number": {"tools": TOOLS + "TURN = 2j\n", "more": "+ tools.TURN.imag"},
    "a helper of a helper": {"tools": TOOLS.replace("1000.0", "deep()") + "def deep():\n    return 3.0\n"},
}


@pytest.mark.check
def test_every_kind_of_edit_changes_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits of a second would have one byte code
    write(tmp_path)
    digests = {"nothing": link(load(tmp_path, monkeypatch)).digest}
    assert link(load(tmp_path, monkeypatch)).digest == digests["nothing"]
    for name, edit in EDITS.items():
        write(tmp_path, **edit)
        digests[name] = link(load(tmp_path, monkeypatch)).digest
    deep = EDITS["a helper of a helper"]["tools"]
    for name, after in {"one deeper": "return 4.0", "its helper's code": "return 3.0 + GAIN"}.items():
        write(tmp_path, deep.replace("return 3.0", after))
        digests[name] = link(load(tmp_path, monkeypatch)).digest
    compiled = EDITS["a helper that its author compiled"]["tools"]
    assert digests.pop("a helper that its author compiled") == digests["nothing"]  # it is the same machine code
    write(tmp_path, compiled.replace("1000.0", "1002.0"))
    digests["a number in a helper that its author compiled"] = link(load(tmp_path, monkeypatch)).digest
    assert len(set(digests.values())) == len(digests), digests


def test_games_that_differ_in_numbers_and_sizes_of_their_world_share_one_kernel():
    small, large = two_team.game(nodes=6), two_team.game(nodes=20)
    assert link(small) is link(large)


def test_a_world_of_one_row_shares_the_kernel_of_larger_ones():
    def with_adjacency(shape: tuple[int, int]) -> Game:
        game = two_team.game()
        object.__setattr__(game, "world", game.world._replace(adjacency=np.zeros(shape, np.uint8)))
        return game

    one_row, square = with_adjacency((1, 6)), with_adjacency((6, 6))
    assert one_row.world.adjacency.flags.f_contiguous  # and C as well
    assert link(one_row) is link(square)
    columns = with_adjacency((6, 6))
    object.__setattr__(columns, "world", columns.world._replace(adjacency=np.asfortranarray(np.eye(6, dtype=np.uint8))))
    assert link(columns) is not link(square)


def test_games_whose_worlds_lie_differently_in_memory_do_not():
    game, strided = two_team.game(), two_team.game()
    object.__setattr__(strided, "world", game.world._replace(adjacency=np.zeros((6, 12), np.uint8)[:, ::2]))
    assert link(game) is not link(strided)


def test_games_whose_inner_tuples_have_their_numbers_in_another_order_do_not():
    forwards, backwards = namedtuple("Options", ["near", "far"]), namedtuple("Options", ["far", "near"])
    games = [replace(two_team.game(), world=(options(near=1, far=2),)) for options in (forwards, backwards)]
    assert link(games[0]) is not link(games[1])


@pytest.mark.check
def test_without_a_place_to_keep_them_games_are_compiled_with_one_warning(tmp_path: Path):
    write(tmp_path)
    program = """
import warnings
import numba.core.caching
from games import two_team
from palaestra.core.compile.linker import link
from palaestra.core.run.kernel import KernelSimulation
from rules import game

numba.core.caching.CacheImpl._locator_classes = []  # a read-only install and no home: no folder for a cache
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    link(two_team.game())
    sim = KernelSimulation(game(), 1)
    sim.reset(seed=1)
    sim.step([[0]])
print(sim.states["x"][0], [str(w.message) for w in caught])
"""
    path = os.pathsep.join([str(tmp_path), *(p for p in sys.path if p)])
    x, _, messages = python(program, PYTHONPATH=path, NUMBA_CACHE_DIR=None).partition(" ")
    assert x == "1111.0"
    assert messages.count("Set NUMBA_CACHE_DIR to a writable directory that is yours alone") == 1
    assert messages.count("', '") == 0
