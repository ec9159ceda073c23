"""Every command says which line installs an optional package that it lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="hides packages in forks")]

CASES = {
    "demo": {"tyro": "baselines,flight,render", "PIL": "baselines,flight,render", "jsbsim": "flight"},
    "play TeamPong": {"pygame": "render"},
    "train mappo": {"tyro": "baselines", "torch": "baselines", "safetensors": "baselines"},
    "train ppo": {"tyro": "baselines", "stable_baselines3": "baselines"},
    "train ucav_pursuit": {"stable_baselines3": "baselines", "jsbsim": "flight"},
    "train seqwm": {"torch": "baselines", "mujoco": "robots"},
    "train vdn --seeds 0-1 --ray local": {"ray": "ray", "tyro": "baselines"},
    "eval UcavDogfight --a expert --b lead_pursuit": {"jsbsim": "flight"},
    "eval QuadSumo --a shove --b random": {"mujoco": "robots"},
    "eval TeamPong --a tracker --b chaser --html pages": {"PIL": "render"},
    "eval TeamPong --a tracker --b chaser --ray local": {"ray": "ray"},
    "bench QuadSumo": {"mujoco": "robots"},
    "replay match.npz --gif match.gif": {"PIL": "render"},
    "replay match.npz --html match.html": {"PIL": "render"},
    "data make TeamTrap --policy peak --episodes 1 --out data/x-v0": {"minari": "data", "h5py": "data"},
    "check QuadSumo": {"mujoco": "robots"},
}
"""Commands, and packages that they need with the extra that brings each."""
SWEEP = [
    *(
        "list",
        "info UcavDogfight",
        "demo",
        "play TeamPong --keys",
        "train",
        "train qmix",
        "eval QuadSumo --a shove --b random",
    ),
    *(
        "bench UcavDogfight",
        "replay match.npz",
        "data list .",
        "check QuadSumo",
    ),
]
"""A command of each kind, where no optional package is there at all."""
OPTIONAL = sorted({package for needs in CASES.values() for package in needs} | {"rich", "transformers"})
PROGRAM = """
import contextlib, io, json, os, signal, sys

from palaestra.cli import COMMANDS, main
from importlib import import_module
for module in COMMANDS.values():
    import_module(module)

asked, said = json.loads(sys.argv[1]), []
for hidden, words in asked:
    reader, writer = os.pipe()
    if not os.fork():
        os.close(reader)
        signal.alarm(60)  # what needs no package would train on
        sys.stdin = io.StringIO("q\\n")
        for name in hidden:
            assert name not in sys.modules, f"the command line imports {name} by itself"
            sys.modules[name] = None
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(words.split())
            except BaseException as error:
                code = repr(error)
        with open(writer, "w") as file:
            json.dump([code, out.getvalue()[-2000:], err.getvalue()[-2000:]], file)
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        said.append(json.loads(file.read() or '["no answer", "", ""]'))
    os.wait()
print(json.dumps(said))
"""


def said_by(folder: Path, asked: list[tuple[list[str], str]]) -> list[Any]:
    """Code, output and errors of commands without these packages, each in a fork that has imported the core alone."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    words = [sys.executable, "-c", PROGRAM, json.dumps(asked)]
    ran = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a replay."""
    from palaestra.replay import record

    made = tmp_path_factory.mktemp("here")
    record("palaestra/TeamPong-v0", seed=1).save(made / "match.npz")
    return made


def test_a_command_without_a_package_names_the_line_that_installs_it(folder: Path):
    asked = [(words, package, extra) for words, needs in CASES.items() for package, extra in needs.items()]
    answers = said_by(folder, [([package], words) for words, package, _ in asked])
    wrong = [
        (words, package, code, out, err)
        for (words, package, extra), (code, out, err) in zip(asked, answers, strict=True)
        if code != 1 or f'pip install "palaestra[{extra}]"' not in (out + err).splitlines()[-1]
    ]
    assert not wrong


def test_without_any_optional_package_a_command_works_or_names_a_line(folder: Path):
    for words, (code, out, err) in zip(SWEEP, said_by(folder, [(OPTIONAL, words) for words in SWEEP]), strict=True):
        assert code == 0 or 'pip install "palaestra[' in out + err, (words, code, out, err)
