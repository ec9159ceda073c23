"""What hooks use is read from their byte code: names that are really loaded, and nothing that is merely called so."""

import dataclasses
import enum
import importlib.machinery
import math
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from games.play import python

from palaestra.core.compile import linker
from palaestra.core.compile.identity import rules_digest
from palaestra.core.compile.linker import jit_disabled, link
from palaestra.core.compile.reachable import attributes_in, circle_of_calls, constant_bytes, names_in, reachable
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Field, Game, Role

pytestmark = pytest.mark.jitless


class Order(enum.IntEnum):
    HOLD = 0
    FIRE = 7


class Mood(enum.Enum):
    CALM = 1
    WILD = 2


@dataclasses.dataclass(frozen=True)
class Limit:
    highest: float


tools = types.ModuleType("tools")
tools.OFFSET, tools.unused, tools.Order = 100.0, 5.0, Order  # type: ignore[attr-defined]
tools.inner = types.ModuleType("inner")  # type: ignore[attr-defined]
tools.inner.DEEP = 3.0  # type: ignore[attr-defined]
OFFSET = 1.0  # no rule uses it, although tools.OFFSET is loaded
RATIO = 0.5


def twice(x):
    return 2 * x


def halve(x):
    return RATIO * x


tools.half = halve  # type: ignore[attr-defined]
PAIR = (twice, 4.0)


def factorial(n):
    return 1.0 if n <= 1 else n * factorial(n - 1)


def is_even(n):
    return 1.0 if n == 0 else is_odd(n - 1)


def is_odd(n):
    return 0.0 if n == 0 else is_even(n - 1)


def endless(n):
    return endless(n - 1)


def used(function: Callable) -> dict[str, Any]:
    return {found.name: found.value for found in reachable({"hook": function}) if found.value is not function}


def test_the_names_of_attributes_are_no_globals():
    def hook(s):
        s.twice = s.OFFSET
        return s.halve(s.PAIR)

    assert used(hook) == {}
    assert attributes_in({"hook": hook}) >= {"twice", "OFFSET", "halve", "PAIR"}


def test_chains_of_attributes_are_followed_as_the_code_has_them():
    def hook(s):
        return tools.OFFSET + tools.inner.DEEP + math.pi + tools.half(s.unused)

    assert names_in(hook.__code__).globals == (
        ("math", "pi"),
        ("tools", "OFFSET"),
        ("tools", "half"),
        ("tools", "inner", "DEEP"),
    )
    expected = {"tools.OFFSET": 100.0, "tools.inner.DEEP": 3.0, "tools.half": halve, "RATIO": 0.5}
    assert used(hook).items() >= expected.items()
    assert "tools.unused" not in used(hook)


def test_of_a_module_handed_on_whole_every_attribute_may_be_meant():
    def hook(s):
        module = tools
        return module.OFFSET

    assert used(hook) == {"tools.OFFSET": 100.0}


def test_code_inside_closures_and_defaults_are_reached():
    gain, module = 3.0, tools

    def hook(s, first=1.5, *, second=twice):
        return [gain * halve(k) + module.inner.DEEP for k in range(3)], first, second

    found = used(hook)
    assert found["gain"] == 3.0
    assert found["module.inner.DEEP"] == 3.0
    assert found["halve"] is halve
    assert found["default 0"] == 1.5
    assert found["default second"] is twice


def test_tuples_enumerations_and_compiled_functions_are_seen_through():
    compiled: Any = types.SimpleNamespace(py_func=twice)

    def hook(s):
        return PAIR[0](compiled(Order.FIRE)), Mood.WILD.value

    assert used(hook) == {
        "Mood.WILD.value": 2,
        "Order.FIRE": Order.FIRE,
        "PAIR length": 2,
        "PAIR[0]": twice,
        "PAIR[1]": 4.0,
        "compiled": twice,
    }


def test_functions_that_call_themselves_or_each_other_are_entered_once():
    entered = [found.value for found in reachable({"hook": is_even, "other": factorial}) if found.is_new]
    assert entered == [is_even, is_odd, factorial]
    assert circle_of_calls({"hook": factorial}) == []
    assert circle_of_calls({"hook": twice, "other": is_odd}) == [is_odd, is_even]


def test_constants_are_bytes_that_distinguish_them():
    table = np.arange(6.0).reshape(2, 3)
    record = np.zeros(2, [("x", "f8"), ("n", "i4")])
    values = [1, 1.0, True, "1", None, (1,), ((1,),), (1, 1), np.float32(1), np.float64(1), Order.FIRE, 7, Order, Mood]
    values += [table, table + 1e-12, table.astype("f4"), table.reshape(3, 2), np.asfortranarray(table), record]
    values += [table.dtype, record.dtype, frozenset("ab"), frozenset("abc"), abs, min]
    values += [slice(0, 3), slice(1, 3), range(3), range(4), numba.int32, numba.int64]
    values += [
        Limit(1.0),
        Limit(2.0),
        types.MappingProxyType({"a": 1}),
        types.MappingProxyType({"a": 2}),
        np.sin,
        np.cos,
    ]
    assert len({constant_bytes(value) for value in values}) == len(values)
    assert constant_bytes(table.copy()) == constant_bytes(table)


@pytest.mark.parametrize(("one", "other"), [([], [1]), ({}, {1: 2}), (set(), {1}), (bytearray(), bytearray(b"a"))])
def test_what_may_change_counts_by_its_class_alone(one: Any, other: Any):
    assert constant_bytes(one) == constant_bytes(other)


def test_where_a_package_is_installed_is_no_part_of_a_constant():
    here, there = types.ModuleType("tools"), types.ModuleType("tools")
    here.__file__, there.__file__ = "/here/tools.py", "/there/tools.py"
    spec = importlib.machinery.ModuleSpec
    here.__spec__, there.__spec__ = spec("tools", None, origin="/here"), spec("tools", None, origin="/there")
    assert constant_bytes(here) == constant_bytes(there)
    assert constant_bytes(np) != constant_bytes(math)


def test_where_a_class_of_the_core_is_defined_is_no_part_of_a_constant(monkeypatch: pytest.MonkeyPatch):
    limit = Limit(1.0)
    authors = constant_bytes(limit)
    monkeypatch.setattr(Limit, "__module__", "palaestra.core.one")
    here = constant_bytes(limit)
    monkeypatch.setattr(Limit, "__module__", "palaestra.core.room.other")
    assert constant_bytes(limit) == here != authors


def tiny(step: Callable, **changes: Any) -> Game:
    role = Role("runner", ("red_0",), (Field("x", (), -1e9, 1e9),), (Choice("go", 2),))
    hooks: dict[str, Any] = {"reset": start, "step": step, "observe": observe, **changes}
    return Game(name="Tiny", roles=(role,), state=(("x", "f8", (6,)), ("order", "i8"), ("spawn", "f8")), **hooks)


def start(s, world):
    for k in range(6):
        s.x[k] = 1.0
    s.spawn = 40.0


def observe(s, world, observations, scratch):
    observations.runner[0].x = s.x[0]


def ordered(s):
    s.order = Order.FIRE
    s.x[1] += 0.5 * Order.FIRE
    if s.order == tools.Order.FIRE:
        s.x[1] += (0.0, 10.0)[Order.FIRE - 6]


def valued(s):
    mood = Mood.CALM if s.x[2] < 0 else Mood.WILD
    if mood == Mood.WILD:
        s.x[2] += Order.FIRE.value + Mood.WILD.value


def through_modules(s):
    s.x[3] += tools.half(s.x[3]) + tools.inner.DEEP


def recursive(s):
    s.x[5] = factorial(5.0)


def from_closure(function: Callable) -> Callable:
    def spawn(s, world, actions, rewards, scratch):  # a hook may have the name of a field
        s.x[0] += s.spawn
        ordered(s)
        valued(s)
        through_modules(s)
        s.x[4] += function(s.x[4])
        recursive(s)
        return False

    return spawn


spawn = from_closure(twice)


def test_hooks_play_whatever_way_they_name_what_they_use():
    sim = KernelSimulation(tiny(spawn), 1)
    sim.reset(seed=1)
    sim.step([[0]])
    assert sim.states["x"].tolist() == [[41.0, 14.5, 10.0, 4.5, 3.0, 120.0]]


def circular(s, world):
    s.x[0] = is_even(4)


def never_ends(s, world):
    s.x[0] = endless(4)


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="the interpreter can")
@pytest.mark.parametrize(
    ("reset", "message"),
    [
        (circular, "Tiny: 'is_even' and 'is_odd' call each other"),
        (never_ends, r"Tiny: the hook 'reset' never ends in 'endless' \(test_reachable.py line \d+\)"),
    ],
)
def test_recursion_that_numba_cannot_compile_is_refused_by_name(reset: Callable, message: str):
    with pytest.raises(ValueError, match=message):
        KernelSimulation(tiny(spawn, reset=reset), 1)


def test_a_hook_is_a_plain_function():
    with pytest.raises(TypeError, match="Tiny: the hook 'step' is a builtin_function_or_method: give a plain function"):
        link(tiny(max))


def retired(s, world, actions, rewards, scratch):
    s.alive[0] = 0
    return False


def retired_by_key(s, world, actions, rewards, scratch):
    s["alive"][0] = 0
    return False


def test_rules_that_change_life_may_forbid_actions():
    def alive(s):
        return s.x[0]

    def speaks_of_it(s, world, actions, rewards, scratch):
        s.x[0] = alive(s)
        return False

    forbids = [linker.constants_of(tiny(step))["MAY_FORBID"] for step in (retired, retired_by_key, spawn, speaks_of_it)]
    assert forbids == [True, True, False, False]


RULES = """
import enum
import tools
from palaestra.game import Choice, Field
from palaestra.game import Game, Role
class Order(enum.IntEnum):
    HOLD = 0
    FIRE = 7
def reset(s, world):
    s.x = Order.FIRE if "a" in {"a", "b", "c", "d"} else tools.GAIN
def step(s, world, actions, rewards, scratch):
    return False
def observe(s, world, observations, scratch):
    observations.runner[0].x = s.x
role = Role("runner", ("red_0",), (Field("x", (), -1e9, 1e9),), (Choice("go", 2),))
game = Game(name="Tiny", roles=(role,), state=(("x", "f8"),), reset=reset, step=step, observe=observe)
"""
DIGESTS = """
import linecache, sys
from pathlib import Path
from palaestra.core.compile.identity import rules_digest
from palaestra.core.compile.linker import link
folder, sources = Path(sys.argv[1]), sys.argv[2:]
sys.path.insert(0, str(folder))
for source in sources:
    (folder / "rules.py").write_text(source)
    sys.modules.pop("rules", None)
    linecache.clearcache()
    from rules import game
    print(rules_digest(game), link(game).digest)
"""


def digests(folder: Path, hash_seed: int, *sources: str) -> list[list[str]]:
    """The digests of the rules and of the kernel of each source, which one process imports one after the other."""
    (folder / "tools.py").write_text("GAIN = 2.0\n")
    environment = {"PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"}
    return [line.split() for line in python(DIGESTS, str(folder), *sources, **environment).splitlines()]


@pytest.mark.check
def test_digests_are_the_same_in_every_process_and_see_the_value_of_a_member(tmp_path: Path):
    first, changed = digests(tmp_path, 1, RULES, RULES.replace("FIRE = 7", "FIRE = 8"))
    assert digests(tmp_path, 2, RULES) == [first]
    assert all(a != b for a, b in zip(first, changed, strict=True))


def test_the_sources_for_the_digest_of_the_rules_are_read_once_a_game(monkeypatch: pytest.MonkeyPatch):
    game = tiny(spawn)
    digest = rules_digest(game)
    monkeypatch.setattr("inspect.getsource", None)  # a second read would fail
    assert rules_digest(game) == digest
