"""A mistake in the rules of a game names the author's file and line, and what to write, on every way to the game.

Each mistake is one line of `RULES` written otherwise. They are compiled: what Python itself finds wrong is said before
the compiler starts; the compiler's own refusals take it seconds and are marked slow. All of them:
``pytest -m "slow or not slow" tests/testing/test_author_mistakes.py``.
"""

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import palaestra
from palaestra import registry
from palaestra.cli import main
from palaestra.core.compile.diagnosis import RuleError
from palaestra.core.compile.linker import jit_disabled

pytestmark = [pytest.mark.skipif(jit_disabled(), reason="nothing is compiled"), pytest.mark.check]

MOST_LINES = 12
RULES = """
import random
import numpy as np
from typing import NamedTuple
import palaestra
from palaestra.game import Choice, Field, Parameter
from palaestra.game import Game, Role
from palaestra.game import uniform

COST = {"pull": 0.5}
class Cost:
    PULL = 0.5
class Ground(NamedTuple):
    grip: np.ndarray
EFFORT = Choice("effort", 2, ("rest", "pull"))
PULLER = Role("puller", ("red_0", "blue_0"), (Field("knot_m", (), -9.0, 9.0),), (EFFORT,))

def place(s):
    return uniform(s, -0.1, 0.1)

def reset(s, world):
    s.knot_m = place(s)
    s.breath[0] = 1.0

def step(s, world, actions, rewards, scratch):
    for k in range(2):
        effort = 0.5 * actions.puller[k].effort
        s.knot_m += effort * s.parameters.force * (1 - 2 * k)
    if abs(s.knot_m) < 1.0:
        return False
    if s.steps > 100000:
        s.info.end_reason = 2
    s.info.winner = 0 if s.knot_m > 0.0 else 1
    rewards[0] = 1.0 if s.knot_m > 0.0 else -1.0
    rewards[1] = -rewards[0]
    return True

def observe(s, world, observations, scratch):
    for k in range(2):
        seen = observations.puller[k]
        seen.knot_m = s.knot_m * (1 - 2 * k)

def script(s, world, slot, which, actions, scratch):
    actions.puller[slot].effort = 1 if s.breath[0] > 0.5 else 0

def game():
    return Game(
        name="Rope", roles=(PULLER,), state=(("knot_m", "f8"), ("breath", "f8", (2,))), world=Ground(np.ones(3)),
        reset=reset, step=step, observe=observe, script=script, scripts=("steady",), horizon=20,
        parameters=(Parameter("force", 0.5, 0.0, 1.0),), end_reasons=("dragged_over",), zero_sum=True,
    )

"""


@dataclass(frozen=True)
class Mistake:
    """One line of the rules written otherwise.

    Attributes:
        name: Of the test.
        line: What stands in the line.
        instead: What the author wrote.
        says: Pattern of what is said about it: the near name, or what to write.
        is_slow: Whether the compiler finds it.
    """

    name: str
    line: str
    instead: str
    says: str
    is_slow: bool = False


MISTAKES = (
    Mistake("state field", "s.knot_m += effort", "s.knott_m += effort", "no field 'knott_m': did you mean 'knot_m'"),
    Mistake("action field", "[k].effort", "[k].efort", "no field 'efort': did you mean 'effort'"),
    Mistake("observation field", "seen.knot_m =", "seen.knot =", "observation of 'puller' has no field 'knot': did"),
    Mistake("role", "actions.puller[k]", "actions.pullers[k]", "no role 'pullers': did you mean 'puller'"),
    Mistake("member", "actions.puller[k].effort", "actions.puller.effort", r"array of records.*\[k\].effort"),
    Mistake("parameter", "s.parameters.force", "s.parameters.fource", "parameter 'fource': did you mean 'force'"),
    Mistake("undefined name", "abs(s.knot_m)", "absolute(s.knot_m)", "the name 'absolute' is not defined"),
    Mistake("function of a module", "abs(s.knot_m)", "np.absolut(s.knot_m)", "did you mean 'absolute'"),
    Mistake("hook's arguments", "rewards, scratch):", "rewards):", r"write def step\(.*rewards, scratch\):"),
    Mistake("return without a value", "return False", "return", "return 0 while the match goes on"),
    Mistake("word as action", "= 1 if s.breath[0]", "= 'pull' if s.breath[0]", "write the number.*: 0 rest, 1 pull"),
    Mistake("breakpoint", "effort = 0.5", "breakpoint(); effort = 0.5", "compiled=False, or set NUMBA_DISABLE_JIT=1"),
    Mistake("index outside", "rewards[1] =", "rewards[7] =", r"rewards\[7\]: index 7 is out of bounds.* size 2"),
    Mistake("index of a field", "s.breath[0] = 1.0", "s.breath[2] = 1.0", r"s.breath\[2\]: index 2 is out of bounds"),
    Mistake("real index", "s.breath[0] = 1.0", "s.breath[0 / 1] = 1.0", "an index must be an integer"),
    Mistake("arguments of a function", "(s, -0.1, 0.1)", "(s, -0.1)", "missing 1 required positional argument: 'high'"),
    Mistake("writing to the world", "effort = 0.5", "world.grip[0] = effort = 0.5", "the world is read-only.*"),
    Mistake("random numbers of NumPy", "uniform(s, -0.1, 0.1)", "np.random.uniform(-0.1, 0.1)", "palaestra.core.rng"),
    Mistake("random numbers of Python", "uniform(s, -0.1, 0.1)", "random.uniform(-0.1, 0.1)", "palaestra.core.rng"),
    Mistake("unplayed branch", "info.end_reason = 2", "info.end_reson = 2", "did you mean 'end_reason'", is_slow=True),
    Mistake("end without result", "    return True", "    pass", "return 0 while the match goes on", is_slow=True),
    Mistake("dict", "effort = 0.5", "effort = COST['pull']", "COST.*compiled rules read numbers", is_slow=True),
    Mistake("class", "effort = 0.5", "effort = Cost.PULL", "Cost.*compiled rules read numbers", is_slow=True),
    Mistake("format", "effort = 0.5", "print(f'{s.knot_m:.2f}'); effort = 0.5", "give print the number", is_slow=True),
    Mistake("list", "effort = 0.5", "effort = [0.5, s.knot_m][0]", "allocates memory.*scratch=", is_slow=True),
    Mistake("array", "effort = 0.5", "effort = np.zeros(3)[k]", "allocates memory.*scratch=", is_slow=True),
    Mistake("unknown to numba", "abs(s.knot_m)", "np.heaviside(s.knot_m, 1)", "write a loop", is_slow=True),
    Mistake("text as index", "rewards[0] =", "rewards['red'] =", "an index must be an integer"),
    Mistake("two kinds", "effort = 0.5 ", "word = 0.5 if k else 'no'; effort = 0.5 ", "unify", is_slow=True),
)  # fmt: skip
"""What authors get wrong."""
SOUND = Mistake("none", "effort = 0.5", "effort = 0.5", "")


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mistake], tuple[str, str]]]:
    """Writes and imports rules with a mistake: ``(module:id, "rope_0.py line 7")``."""
    before = dict(registry.ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    modules = []

    def author(mistake: Mistake) -> tuple[str, str]:
        name = "rope_" + re.sub(r"\W", "_", mistake.name)
        assert mistake.line in RULES
        text = RULES.replace(mistake.line, mistake.instead, 1)
        line = RULES[: RULES.index(mistake.line)].count("\n") + 1
        id = f"mine/{name.title().replace('_', '')}-v0"
        (tmp_path / f"{name}.py").write_text(text + f"palaestra.register({id!r}, game)\n")
        modules.append(name)
        importlib.import_module(name)
        return f"{name}:{id}", f"{name}.py line {line}"

    yield author
    for name in modules:
        sys.modules.pop(name, None)
    for id in set(registry.ROWS) - set(before):
        del registry.ROWS[id]
        gymnasium.registry.pop(id, None)


WAYS: dict[str, Callable[[str], Any]] = {
    "make": gymnasium.make,
    "make_vec": lambda id: gymnasium.make_vec(id, num_envs=2),
    "make_batch": lambda id: palaestra.make_batch(id, 2),
    "make_parallel": registry.make_parallel,
}
COMMANDS = ("check", "eval", "bench", "play", "info")


def cases(*, by: str) -> list[Any]:
    """Every mistake, on one of the ways in turn."""
    ways = list(WAYS) if by == "API" else [c for c in COMMANDS if c != "info"]
    turns = [(mistake, ways[k % len(ways)]) for k, mistake in enumerate(MISTAKES)]
    return [pytest.param(m, way, marks=[pytest.mark.slow] * m.is_slow, id=f"{m.name}: {way}") for m, way in turns]


def assert_says(mistake: Mistake, place: str, message: str) -> None:
    assert place in message
    assert re.search(mistake.says, message, re.DOTALL), message
    assert message.rstrip().count("\n") < MOST_LINES, message


def words_of(command: str, id: str) -> list[str]:
    more = {
        "eval": ["--a", "steady", "--b", "random", "--matches", "4", "--num-envs", "2"],
        "bench": ["--num-envs", "2", "--rounds", "1"],
        "play": ["--headless", "u", "--agent", "red_0"],
        "check": [],
    }
    return [command, id, *more[command]]


@pytest.mark.parametrize(("mistake", "way"), cases(by="API"))
def test_a_mistake_names_its_line_by_api(mistake: Mistake, way: str, author: Callable[[Mistake], tuple[str, str]]):
    named, place = author(mistake)
    with pytest.raises(RuleError) as raised:
        WAYS[way](named.partition(":")[2])
    error = raised.value
    assert_says(mistake, place, str(error))
    assert str(error).startswith("Rope: ")
    assert f"{Path(error.file).name} line {error.line}" == place
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(("mistake", "command"), cases(by="command line"))
def test_a_mistake_names_its_line_by_command_line(
    mistake: Mistake, command: str, author: Callable[[Mistake], tuple[str, str]], capsys: pytest.CaptureFixture[str]
):
    named, place = author(mistake)
    assert main(words_of(command, named)) == 1
    printed = capsys.readouterr()
    assert_says(mistake, place, printed.out + printed.err)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_game_names_the_line(way: str, author: Callable[[Mistake], tuple[str, str]]):
    named, place = author(MISTAKES[0])
    with pytest.raises(RuleError, match="did you mean 'knot_m'") as raised:
        WAYS[way](named.partition(":")[2])
    assert place in str(raised.value)


@pytest.mark.slow
def test_rules_that_a_worker_compiles_name_the_line(author: Callable[[Mistake], tuple[str, str]]):
    """The parent compiles no rules: the error is the worker's."""
    named, place = author(MISTAKES[0])
    with pytest.raises(RuleError, match="did you mean 'knot_m'") as raised:
        palaestra.make_batch(named.partition(":")[2], 2, workers=1)
    assert place in str(raised.value)


@pytest.mark.slow
def test_code_that_numba_refuses_keeps_numbas_words_aside(author: Callable[[Mistake], tuple[str, str]]):
    named, _ = author(next(m for m in MISTAKES if m.name == "dict"))
    with pytest.raises(RuleError) as raised:
        palaestra.make_batch(named.partition(":")[2], 1)
    assert "Failed in nopython mode pipeline" in raised.value.compiler_message
    assert "Failed in nopython" not in str(raised.value)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.line) == (str(raised.value), raised.value.line)


CRASHING = """
import os, signal
from palaestra.testing import conformance

@conformance(order=-1)
def interpreter_dies(subject):
    \"\"\"Kills the interpreter, as rules may that write outside an array.\"\"\"
    os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_crash_names_the_check_that_ran(author: Callable[[Mistake], tuple[str, str]]):
    named, _ = author(SOUND)
    module = Path(named.partition(":")[0] + ".py")
    module.write_text(module.read_text() + CRASHING)
    ended = check_in_console(named, "--only", "interpreter_dies")
    assert ended.returncode == 1
    assert "was killed (SIGSEGV)" in ended.stderr
    assert "interpreter_dies" in ended.stderr


def test_a_module_in_the_current_folder_is_found_by_the_console_script(author: Callable[[Mistake], tuple[str, str]]):
    named, place = author(MISTAKES[0])
    ended = check_in_console(named)
    assert ended.returncode == 1
    assert place in ended.stdout
    assert "did you mean 'knot_m'" in ended.stdout
    assert (ended.stdout + ended.stderr).count("\n") <= MOST_LINES


def check_in_console(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs ``palaestra check`` as the console script does: the current folder is not on Python's path."""
    program = "import sys; sys.path.remove(''); from palaestra.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "check", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_script_that_makes_a_wrong_game_ends_in_few_lines(author: Callable[[Mistake], tuple[str, str]]):
    named, place = author(MISTAKES[0])
    module, _, id = named.partition(":")
    Path("train.py").write_text(f"import gymnasium\nimport {module}\nenv = gymnasium.make({id!r})\n")
    ended = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert place in ended.stderr
    assert "did you mean 'knot_m'" in ended.stderr
    assert ended.stderr.count("\n") <= MOST_LINES, ended.stderr
