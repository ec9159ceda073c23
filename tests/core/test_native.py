"""A native function is compiled once and called by address: bitwise equal results in every kernel and process."""

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games.play import python

from palaestra.core.compile import binder, compiler, linker
from palaestra.core.compile.linker import jit_disabled, link
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Array, Choice, Field, Game, Parameter, Role, apart

compiled_only = pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
pytestmark = [pytest.mark.jitless, pytest.mark.check]

BODY = np.dtype([("position_m", "f8", (3,)), ("speed_mps", "f8"), ("frames", "i8")], align=True)
ENGINE = np.dtype([("thrust", "f8")], align=True)
DRAG = 0.01
TOO_FAST_MPS = 1e6


def drag(speed_mps):
    return DRAG * speed_mps * speed_mps


def lift(body, table):
    for k in range(3):
        body.position_m[k] += table[k, 1]


def fly_frame(body, engines, table, offset, dt_s):
    """Moves a body by one frame and returns its speed."""
    if body.speed_mps > TOO_FAST_MPS:
        raise ValueError("too fast")
    body.speed_mps += dt_s * (engines[0].thrust + engines[1].thrust - drag(body.speed_mps))
    body.frames += 1
    lift(body, table)
    for k in range(offset.shape[0]):
        offset[k] += dt_s * body.speed_mps
    return body.speed_mps


KINDS = (BODY, Array(ENGINE), Array("f8", 2), Array("f8", 1, True), "f8")
fly = apart(fly_frame, KINDS, returns="f8")


def reset(s, world):
    for k in range(2):
        s.body[k].speed_mps = 10.0 * (k + 1)
        s.engine[k].thrust = 1.0 + k


def observe(s, world, observations, scratch):
    observations.pilot[0].speed = s.speed_mps


def inlined(s, world, actions, rewards, scratch):
    for k in range(2):
        s.speed_mps = fly_frame(s.body[k], s.engine, s.table, s.offset, s.parameters.dt_s)
    return False


def by_address(s, world, actions, rewards, scratch):
    for k in range(2):
        s.speed_mps = fly(s.body[k], s.engine, s.table, s.offset, s.parameters.dt_s)
    return False


def by_keyword(s, world, actions, rewards, scratch):
    s.speed_mps = fly(s.body[0], s.engine, table=s.table, dt_s=1, offset=s.offset)
    s.speed_mps += 1.0
    return False


def game(step: Callable, **changes: Any) -> Game:
    role = Role("pilot", ("red_0",), (Field("speed", (), -1e9, 1e9),), (Choice("go", 2),))
    state = (
        ("body", BODY, (2,)),
        ("engine", ENGINE, (2,)),
        ("table", "f8", (3, 2)),
        ("offset", "f8", (4,)),
        ("speed_mps", "f8"),
    )
    parameters = (Parameter("dt_s", 0.1, 0, 1, "s", "length of a frame"),)
    hooks: dict[str, Any] = {"reset": reset, "step": step, "observe": observe, **changes}
    return Game(name="Flight", roles=(role,), state=state, parameters=parameters, **hooks)


Kernels = tuple[dict[str, KernelSimulation], list[str], dict[str, Any]]


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    """The two games that call it, the names of all functions compiled for them, and the function aparts loaded.

    Nothing is served from memory or disk: what was loaded from the disk has no intermediate code to look at.
    """
    if jit_disabled():
        return {step.__name__: KernelSimulation(game(step), 3) for step in (by_address, by_keyword)}, [], {}
    import numba
    from numba.core import event

    def compile_anew(function: Any) -> Any:
        return numba.njit(**compiler.options(inside=False))(function)

    with pytest.MonkeyPatch.context() as patch, event.install_recorder("numba:compile") as recorder:
        patch.setattr(linker, "_linked", {})
        patch.setattr(binder, "loaded", {})
        patch.setattr(compiler, "compile_cached", compile_anew)
        made = {}
        for step in (by_address, by_keyword):
            sim = made[step.__name__] = KernelSimulation(game(step), 3)
            sim.reset(seed=4)
            sim.step([[0]] * 3)
        names = [e.data["dispatcher"].py_func.__name__ for _, e in recorder.buffer if e.is_start]
        return made, names, dict(binder.loaded)


def played(sim: KernelSimulation, decisions: int = 20) -> bytes:
    sim.reset(seed=4)
    seen = b""
    for _ in range(decisions):
        sim.states["table"] += 0.25
        sim.step([[0]] * 3)
        seen += sim.states.tobytes() + sim.observations.tobytes()
    assert (sim.states["body"]["frames"][:, 0] == decisions).all()
    return seen


def test_a_call_by_address_gives_the_bits_of_the_function(kernels: Kernels):
    """The function itself is interpreted: that it then has the bits of a compiled one is tested elsewhere."""
    made, *_ = kernels
    assert played(made["by_address"]) == played(KernelSimulation(game(inlined), 3, compiled=False))


@compiled_only
def test_kernels_call_it_and_do_not_hold_it(kernels: Kernels):
    made, _, loaded = kernels
    kernel: Any = made["by_address"].kernel.drivers["step_lanes"]
    code = []
    for driver in (kernel, loaded[fly.symbol()]):
        (text,) = driver.inspect_llvm().values()
        code.append(text)
    assert f"call i32 @{fly.symbol()}" in code[0]
    constant = f", {TOO_FAST_MPS:e}"  # of the function
    assert [constant in text for text in code] == [False, True]


@compiled_only
def test_two_games_compile_it_once(kernels: Kernels):
    _, names, loaded = kernels
    assert names.count("step_lanes") == 2
    assert names.count("fly_frame") == 1
    assert names.count("drag") == 1
    assert list(loaded) == [fly.symbol()]


def test_arguments_may_be_given_by_keyword(kernels: Kernels):
    sim = kernels[0]["by_keyword"]
    sim.reset(seed=1)
    sim.step([[0]] * 3)
    assert sim.states["speed_mps"][0] == 13.0  # 10 + 1 s * (1 + 2 - 0.01 * 10 * 10) + 1


@compiled_only
def test_an_error_inside_reaches_the_caller(kernels: Kernels):
    sim = kernels[0]["by_address"]
    sim.reset(seed=1)
    sim.states["body"]["speed_mps"] = 1e7
    with pytest.raises(ValueError, match="too fast"):
        sim.step([[0]] * 3)


@compiled_only
def test_a_change_of_the_function_or_of_what_it_calls_changes_every_kernel(monkeypatch: pytest.MonkeyPatch):
    digests, symbols = [link(game(by_address)).digest], [fly.symbol()]
    monkeypatch.setitem(globals(), "DRAG", 0.02)
    digests.append(link(game(by_address)).digest)
    symbols.append(fly.symbol())
    monkeypatch.setitem(globals(), "fly", apart(fly_frame, (*KINDS[:-1], "f4"), returns="f8"))
    digests.append(link(game(by_address)).digest)
    symbols.append(fly.symbol())
    assert len(set(digests)) == len(set(symbols)) == 3


def few(s, world, actions, rewards, scratch):
    s.speed_mps = fly(s.body[0], s.engine)
    return False


def other_record(s, world):
    s.speed_mps = fly(s.engine[0], s.engine, s.table, s.offset, 1.0)


def flat_table(s, world):
    s.speed_mps = fly(s.body[0], s.engine, s.offset, s.offset, 1.0)


@compiled_only
def test_a_call_with_too_few_arguments_names_its_line():
    with pytest.raises(ValueError, match=r"Flight: step, .*test_native.py line \d+: .* missing 3 required .*'table'"):
        KernelSimulation(game(step=few), 1)


@compiled_only
@pytest.mark.parametrize(
    ("hook", "function", "message"),
    [
        ("reset", other_record, r"'body' is Record\(thrust.*"),
        ("reset", flat_table, "'table' is .*, not .*2d, C"),
    ],
)
def test_a_wrong_call_is_refused_by_name(hook: str, function: Callable, message: str):
    message = (
        f"Flight: the hook '{hook}' calls the function apart 'fly_frame': {message}" + r".* \(test_native.py line \d+\)"
    )
    with pytest.raises(ValueError, match=message):
        KernelSimulation(game(**{"step": by_address, hook: function}), 1)


def hoarder(body):
    body.position_m[0] = np.zeros(3)[0]


hoard = apart(hoarder, (BODY,))


def hoarding(s, world):
    hoard(s.body[0])


def runaway(body):
    again(body)


again = apart(runaway, (BODY,))


def running(s, world):
    again(s.body[0])


@compiled_only
@pytest.mark.parametrize(
    ("reset", "message"),
    [
        (
            hoarding,
            r"Flight: the function apart 'hoarder' allocates memory \(test_native.py line \d+\): kernels own no",
        ),
        (running, "Flight: the function apart 'runaway' calls its own address: let it call 'runaway'"),
    ],
)
def test_a_native_function_that_cannot_be_is_refused_by_name(reset: Callable, message: str):
    with pytest.raises(ValueError, match=message):
        KernelSimulation(game(by_address, reset=reset), 1)


def test_types_are_checked_where_they_are_written_down():
    with pytest.raises(ValueError, match="the function apart 'drag': 2 types for 1 parameters"):
        apart(drag, ("f8", "f8"))
    with pytest.raises(TypeError, match="the function apart 'drag': 'number' is no NumPy type and no Array"):
        apart(drag, ("number",))
    with pytest.raises(TypeError, match=r"the function apart 'drag': \('f8', \(3,\)\) is no number and no record"):
        apart(drag, (("f8", (3,)),))
    with pytest.raises(ValueError, match="the function apart 'drag': returns a number or None"):
        apart(drag, ("f8",), returns=BODY)
    with pytest.raises(ValueError, match="the function apart 'drag': give the types of its arguments"):
        apart(drag, returns="f8")
    with pytest.raises(TypeError, match="apart takes a plain function, got builtin_function_or_method"):
        apart(abs, ("f8",))
    k = 1.0
    with pytest.raises(ValueError, match="is a closure: define it at the level of the module"):
        apart(lambda x: k * x, ("f8",))


def test_outside_of_kernels_it_is_the_function():
    body = np.zeros(1, BODY).view(np.recarray)[0]
    engines = np.zeros(2, ENGINE).view(np.recarray)
    assert fly(body, engines, np.zeros((3, 2)), np.zeros(4), 0.1) == 0.0


SHARED = """
import numpy as np
from palaestra.game import Choice, Field
from palaestra.game import Game, Role
from palaestra.game import apart
BODY = np.dtype([("x", "f8"), ("v", "f8")], align=True)
def push(x):
    return x + 0.125
def frame(body, dt):
    body.v = push(body.v)
    body.x += dt * body.v
    return body.x
move = apart(frame, (BODY, "f8"), returns="f8")
def reset(s, world):
    s.body[0].x = 0.0
def step(s, world, actions, rewards, scratch):
    s.x = move(s.body[0], 0.5)
    return False
def observe(s, world, observations, scratch):
    observations.runner[0].x = s.x
def game():
    role = Role("runner", ("red_0",), (Field("x", (), -1e9, 1e9),), (Choice("go", 2),))
    state = (("body", BODY, (1,)), ("x", "f8"))
    return Game(name="Tiny", roles=(role,), state=state, reset=reset, step=step, observe=observe)
"""
PLAY = """
import pickle, sys
import rules
from palaestra.core.compile import binder, compiler, linker
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.workers import ProcessSimulation
def play(sim):
    sim.reset(seed=1)
    for _ in range(5):
        sim.step([[0], [0]])
    x = sim.states["x"].tobytes().hex()
    sim.close()
    return x
if __name__ == "__main__":
    sim = KernelSimulation(rules.game(), 2)
    x = play(sim)
    drivers = list(binder.loaded.values())
    if drivers:
        drivers += sim.kernel.drivers.values()
    hits = sum(sum(d.stats.cache_hits.values()) for d in drivers)
    misses = sum(sum(d.stats.cache_misses.values()) for d in drivers)
    print(x, hits, misses)
    if "workers" in sys.argv:
        print(play(ProcessSimulation(rules.game(), 2, workers=1)))
"""


def play(folder: Path, *words: str, **environment: str | None) -> list[str]:
    """What a process of its own plays: the bytes of x, and how much it took from the cache and compiled."""
    (folder / "rules.py").write_text(SHARED)
    path = os.pathsep.join([str(folder), *(p for p in sys.path if p)])
    places = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(folder / "cache")}
    return python(PLAY, *words, **places, **environment).split()


@compiled_only
def test_every_process_finds_it_anew_and_gives_the_same_bits(tmp_path: Path):
    x, *counts = play(tmp_path)
    assert counts == ["0", "2"]  # the function and the one driver
    # Workers are spawned, with the game pickled to them.
    assert play(tmp_path, "workers") == [x, "2", "0", x]
    assert play(tmp_path, NUMBA_DISABLE_JIT="1")[0] == x


def test_pickled_it_is_resolved_anew():
    again = pickle.loads(pickle.dumps(fly))
    assert again.py_func is fly.py_func
    assert again.symbol() == fly.symbol()
