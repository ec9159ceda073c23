"""``palaestra train METHOD --seeds`` and the options of Ray, without processes and without Ray."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")

from palaestra import registry, scale
from palaestra.cli import common
from palaestra.cli.train import seed_range, split
from palaestra_baselines import fm3q
from palaestra_baselines.common import many_runs
from palaestra_baselines.common.many_runs import TrainingPiece, finished, train_piece, train_runs
from palaestra_baselines.common.run_folder import RunArgs, write_curve


@dataclass
class Args(RunArgs):
    """Arguments.

    Attributes:
        gamma: Discount.
    """

    gamma: float = 0.5


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Args]:
    """Runs of a method ``mine`` in the order of their trainings; seed 3 is interrupted at its first."""
    runs: list[Args] = []

    def train(args: Args) -> SimpleNamespace:
        runs.append(args)
        args.folder.mkdir(parents=True, exist_ok=True)
        if args.seed == 3 and not args.resume:
            (args.folder / "checkpoint.safetensors").touch()
            raise KeyboardInterrupt
        write_curve(
            args.folder / "log.csv", [{"steps": 0, "score": 0.0}, {"steps": 8, "score": args.seed + args.gamma}]
        )
        return SimpleNamespace(steps=8)

    install(monkeypatch, Args=Args, train=train)
    monkeypatch.chdir(tmp_path)
    return runs


def install(monkeypatch: pytest.MonkeyPatch, **members: Any) -> None:
    """Installs a method ``mine``."""
    module = ModuleType("somebodys_method")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(common, "entry_points", lambda group: [EntryPoint("mine", module.__name__, group)])


# -- words -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-3", [0, 1, 2, 3]), ("0,2,5", [0, 2, 5]), ("7", [7]), ("4-5,0,5-6,0", [4, 5, 0, 6])]
)
def test_seeds_are_numbers_and_ranges(text: str, seeds: list[int]):
    assert seed_range(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "-1", "0-", "0,,1", "0-1-2", "0 1", "3-1"])
def test_other_texts_are_no_seeds(text: str):
    with pytest.raises(argparse.ArgumentTypeError, match="3-1' ends before" if text == "3-1" else "must be like 0-7"):
        seed_range(text)


def test_the_words_of_train_itself_may_stand_anywhere():
    words = ["mine", "--gamma", "0.9", "--seeds", "0-3", "--quiet", "--ray=auto", "--at-once", "2"]
    own = ["mine", "--seeds", "0-3", "--ray=auto", "--at-once", "2"]
    assert split(words) == (own, ["--gamma", "0.9", "--quiet"])
    assert split([*words[3:5], *words[:3]]) == (["mine", "--seeds", "0-3"], ["--gamma", "0.9"])
    assert split(["mine", "--help"]) == (["mine"], ["--help"])
    assert split(["--help"]) == (["--help"], [])


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("train mine --ray auto", "--ray goes with --seeds"),
        ("train mine --at-once 2", "--at-once goes with --seeds"),
        ("train mine --seeds 0-3 --seed 2", "give --seed or --seeds, not both"),
        ("train mine --seeds 0-3 --seed=2", "give --seed or --seeds, not both"),
        ("train mine --seeds 0-3 --resume", "leave out --resume and --overwrite"),
        ("train mine --seeds 0-3 --overwrite", "leave out --resume and --overwrite"),
        ("train mine --seeds 0-3 --gamma -1", "--gamma must be greater than 0"),
        ("eval TeamPong --a tracker --b chaser --actors 2", "--actors goes with --ray"),
        ("eval TeamPong --a tracker --b chaser --ray auto --workers 2", "with --ray give --actors"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words: str, wanted: str, run, refused, trained: list[Args]):
    assert wanted in refused(run(*words.split()))
    assert trained == []


@pytest.mark.parametrize("members", [{"main": print}, {"main": print, "Args": SimpleNamespace, "train": print}])
def test_a_method_that_is_a_program_of_its_own_trains_no_seeds(
    members: dict[str, Any], run, refused, monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, **members)
    assert "the method 'mine' (somebodys_method) trains no --seeds" in refused(run("train", "mine", "--seeds", "0-1"))


@pytest.mark.parametrize("words", ["train mine --seeds 0-1", "eval TeamPong --a tracker --b chaser --matches 2"])
def test_without_ray_the_option_says_what_to_install(
    words: str, run, refused, monkeypatch: pytest.MonkeyPatch, trained: list[Args]
):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert 'pip install "palaestra[ray]"' in refused(run(*words.split(), "--ray", "local"))
    assert trained == []


def test_players_go_to_a_cluster_as_texts(run, monkeypatch: pytest.MonkeyPatch):
    heard: list[Any] = []
    result = SimpleNamespace(as_dict=lambda: {"played": 1})
    for name in ("evaluate", "tournament"):
        monkeypatch.setattr(scale, name, lambda *words, **options: heard.append((words, options)) or result)
    pair = ("--a", "nobody:player", "--b", "chaser")
    assert run("eval", "TeamPong", *pair, "--ray", "local", "--actors", 3, "--json").json() == {"played": 1}
    players = ("--players", "nobody:player", "chaser")
    assert run("eval", "TeamPong", *players, "--ray", "10.0.0.1:6379", "--json").json() == {"played": 1}
    (pair, options), (players, more) = heard
    assert pair == ("palaestra/TeamPong-v0", "nobody:player", "chaser")
    assert (options["address"], options["actors"], options["names"]) == ("local", 3, ("nobody:player", "chaser"))
    assert players[1] == {"nobody:player": "nobody:player", "chaser": "chaser"}
    assert (more["address"], more["actors"]) == ("10.0.0.1:6379", None)
    assert not {"workers", "threads"} & {*options, *more}


# -- runs --------------------------------------------------------------------------------------------------------------


def test_each_seed_has_its_folder_and_what_was_interrupted_goes_on(run, trained: list[Args]):
    words = ("train", "mine", "--seeds", "1,3-4", "--gamma", "0.25", "--total-steps", "8", "--quiet")
    printed = run(*words)
    assert printed.code == 130
    assert printed.err == "palaestra: interrupted; the same command continues from the last checkpoints\n"
    assert [(args.seed, args.resume, args.gamma) for args in trained] == [(1, False, 0.25), (3, False, 0.25)]
    printed = run(*words[:-1])
    assert printed.code == 0
    assert [(args.seed, args.resume) for args in trained[2:]] == [(3, True), (4, False)]
    rows = [line.split() for line in printed.out.splitlines()[-5:-1]]
    assert rows == [["seed", "steps", "score"], ["1", "8", "1.25"], ["3", "8", "3.25"], ["4", "8", "4.25"]]
    for seed in (1, 3, 4):
        done = Args(seed=seed, gamma=0.25, total_steps=8)
        assert finished(done)
        assert done.folder == Path("runs", f"seed_{seed}")
    assert run(*words).out == ""
    assert len(trained) == 4


def test_seeds_overwrite_no_results(run, refused, trained: list[Args]):
    (weights := Path("runs", "seed_1", "last.safetensors")).parent.mkdir(parents=True)
    weights.write_bytes(b"weights")
    printed = refused(run("train", "mine", "--seeds", "0-1"))
    assert "seed_1 holds the results of a training (last.safetensors) but no checkpoint to continue from" in printed
    assert trained == []
    (weights.parent / "checkpoint.safetensors").touch()
    assert run("train", "mine", "--seeds", "0-1").code == 0
    assert [args.resume for args in trained] == [False, True]


def test_runs_of_other_settings_are_not_taken_for_complete(run, refused, trained: list[Args]):
    assert run("train", "mine", "--seeds", "0").code == 0
    printed = refused(run("train", "mine", "--seeds", "0", "--gamma", "0.75"))
    assert "seed_0 holds a run with other settings (gamma: was 0.5, is 0.75)" in printed


def test_a_method_measures_by_itself_where_nothing_is_given(trained: list[Args]):
    run = Args(total_steps=8)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        train_runs("mine", [("somebodys_method", run, print)], 0)
    train_runs("mine", [("somebodys_method", run, None)], 0)
    assert finished(run)


def test_a_machine_that_does_not_see_the_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    piece = TrainingPiece("a run", b"", tmp_path / "runs" / ".seen_by_all_x")
    with pytest.raises(FileNotFoundError, match=r"runs: a machine of the cluster does not see .*--directory"):
        train_piece((str(tmp_path), []), piece)


def test_runs_are_in_their_folder_also_where_the_current_one_is_missing(
    trained: list[Args], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    class AnotherMachine:
        def __init__(self, function: Any, shared: Any) -> None:
            self.function = function

        def start(self, piece: TrainingPiece) -> object:
            with contextlib.chdir(elsewhere):
                self.function((str(tmp_path / "missing"), []), piece)
            return object()

        def wait(self, running: list[Any]) -> list[Any]:
            return running

        def result(self, handle: Any) -> None: ...

    monkeypatch.setattr(many_runs, "ProcessTasks", AnotherMachine)
    train_runs("mine", [("somebodys_method", Args(seed=seed, total_steps=8), None) for seed in (0, 1)], 2)
    assert all(finished(Args(seed=seed, total_steps=8)) for seed in (0, 1))
    assert [args.directory for args in trained] == [tmp_path / "runs"] * 2
    assert list(elsewhere.iterdir()) == list((tmp_path / "runs").glob(".*")) == []


# -- processes ---------------------------------------------------------------------------------------------------------


class Killer(threading.Thread):
    """Kills all processes that this one has started, once, when a run has some evaluations."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.killed = folder, 0

    def run(self) -> None:
        deadline = time.monotonic() + 60.0
        while not self.killed and time.monotonic() < deadline:
            time.sleep(0.02)
            for log in self.folder.glob("seed_*/log.csv"):
                self.log, self.content = log, log.read_bytes()
                if self.content.count(b"\n") > 4 and not (log.parent / "done.json").exists():
                    for child in multiprocessing.active_children():
                        child.kill()
                        self.killed += 1
                    break


@pytest.mark.slow  # processes that import torch
def test_runs_whose_processes_are_killed_go_on_and_are_those_of_one_process(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_pong.py").write_text(
        "import palaestra\npalaestra.register('mine/Pong-v0', 'palaestra.games.teams.pong:game')"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    small = "--total-steps 2000 --lanes 16 --warmup-steps 100 --batch-size 16 --hidden 8 --evaluations 20 --matches 8"
    words = ("train", "fm3q", "--env-id", "my_pong:mine/Pong-v0", *small.split(), "--seeds", "0-2", "--directory")
    assert run(*words, "one", "--quiet").code == 0
    killer = Killer(tmp_path / "many")
    killer.start()
    printed = run(*words, "many", "--at-once", 2)
    killer.join()
    assert printed.code == 0, printed.err
    assert killer.killed > 0
    assert "  lost " in printed.out
    assert killer.log.read_bytes().startswith(killer.content)
    for seed in range(3):
        one, many = (
            [line.rpartition(",")[0] for line in Path(name, f"seed_{seed}", "log.csv").read_text().splitlines()]
            for name in ("one", "many")
        )
        assert many == one
        assert len(one) == 22
    registry.ROWS.pop("mine/Pong-v0")


@pytest.mark.slow
def test_an_error_in_a_process_ends_the_other_runs_and_is_raised_here(tmp_path: Path):
    runs = [
        ("palaestra_baselines.fm3q", fm3q.Args(directory=tmp_path / "long", total_steps=10**8, quiet=True), None),
        ("json", Args(directory=tmp_path / "none"), None),
    ]
    with pytest.raises(AttributeError, match="has no attribute 'train'") as caught:
        train_runs("mine", runs, 2, quiet=True)
    assert "in train_run" in str(caught.value.__cause__)
    assert multiprocessing.active_children() == []


@pytest.mark.check
@pytest.mark.skipif(os.name == "nt", reason="a process that sleeps is made by a call that Windows lacks")
def test_trainings_end_with_a_caller_that_is_killed():
    script = (
        "import os, signal\n"
        "from palaestra_baselines.common.many_runs import ProcessTasks\n"
        "print(ProcessTasks(signal.sigtimedwait, []).start(600).pid, flush=True)\n"
        "os.read(0, 1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        training = int(caller.stdout.readline())
        time.sleep(1.5)  # so that it has begun
        assert is_running(training)
        caller.kill()
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline and is_running(training):
        time.sleep(0.05)
    ended = not is_running(training)
    with contextlib.suppress(ProcessLookupError):
        os.kill(training, signal.SIGKILL)
    assert ended


def is_running(process: int) -> bool:
    """Whether a process is there and no zombie, which waits for whoever inherits it."""
    try:
        return subprocess.run(
            ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=True
        ).stdout[:1] not in ("Z", "")
    except subprocess.CalledProcessError:
        return False


# -- notes -------------------------------------------------------------------------------------------------------------


def test_what_is_added_to_an_error_is_printed_behind_it(run, refused, monkeypatch: pytest.MonkeyPatch):
    error = ValueError("it went wrong")
    error.add_note("5 of 9 matches are kept in a file")

    def fail(args: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr("palaestra.cli.listing.run", fail)
    assert refused(run("list")) == "palaestra: it went wrong; 5 of 9 matches are kept in a file\n"
