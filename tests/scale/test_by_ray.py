"""Evaluations on Ray: the tables of one process, to the bit, whatever dies; and what a stranger's machine is told."""

# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import palaestra
from palaestra import evaluation, registry, scale
from palaestra.core.files import FileError
from palaestra.evaluation import MatchTable
from palaestra.scale import by_ray, pieces
from palaestra.scale.cluster import CLUSTER_VARIABLE, connected

ray = pytest.importorskip("ray", reason='needs the extra "palaestra[ray]"')
pytestmark = pytest.mark.ray

PONG = "palaestra/TeamPong-v0"
WEIGHTS = Path(__file__).parents[2] / "assets" / "palaestra_assets" / "weights" / "fm3q_team_pong.safetensors"
SIX = {
    "tracker": "tracker",
    "chaser": "chaser",
    "weak": "tracker:0.5",
    "random": "random",
    "mix": "mix",
    "network": WEIGHTS,
}
SLOWER_PLAYER = "scale_players:slower"
"""Plays on for seconds."""


@pytest.fixture(autouse=True)
def a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = str(Path(__file__).parent)  # workers find the players of this folder
    monkeypatch.setenv("PYTHONPATH", here, prepend=os.pathsep)
    monkeypatch.syspath_prepend(here)


@pytest.fixture(scope="module")
def connected_user(cluster: Any) -> Iterator[None]:
    """This process is connected to the cluster before it calls `scale`; one connection, and its workers, for all."""
    with ray.init(address=cluster.address, logging_level="warning", log_to_driver=False):
        yield


@pytest.fixture
def killer(at_work: Callable[[str], list[int]]) -> Callable[[int, float], Killer]:
    """``killer(kills, every_s)``."""
    return lambda kills, every_s: Killer(lambda: at_work("play_piece"), kills, every_s)


class Killer:
    """Kills a playing process now and then, while it is used as a context manager."""

    def __init__(self, playing: Callable[[], list[int]], kills: int, every_s: float) -> None:
        self.left, self.killed, self._playing, self._every_s = kills, 0, playing, every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        chance = random.Random(0)
        while self.left and not self._over.wait(self._every_s * chance.uniform(0.5, 1.5)):
            if found := self._playing():
                os.kill(chance.choice(found), signal.SIGKILL)
                self.left -= 1
                self.killed += 1


def same(a: MatchTable, b: MatchTable) -> None:
    np.testing.assert_array_equal(a.results, b.results)
    assert str(a) == str(b)


def losses_in(notes: list[str]) -> int:
    return max([0, *(int(note.split(", ")[1].split()[0]) for note in notes if "lost" in note)])


def fast_twin() -> Callable[[np.ndarray], np.ndarray]:
    import scale_players  # pyright: ignore[reportMissingImports]

    return scale_players.fast


def test_a_tournament_of_six_is_that_of_one_process():
    one = evaluation.tournament(PONG, SIX, matches=20)
    notes: list[str] = []
    many = scale.tournament(
        PONG, SIX, matches=20, address="local", actors=2, progress=lambda done, total, note: notes.append(note)
    )
    assert (notes[0], notes[-1]) == (f"{2 + by_ray.AHEAD} pieces given out", "0 pieces given out")
    assert len(many.tables) == 15
    for a, b in zip(one.tables, many.tables, strict=True):
        same(a, b)
    assert one.as_dict() == many.as_dict()


def listening() -> dict[str, str]:
    """Addresses at which this process and those that it has started accept connections, and who does."""
    import psutil  # which Ray brings along  # pyright: ignore[reportMissingModuleSource]

    own = psutil.Process()
    found: dict[str, str] = {}
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has just ended
            for socket in process.net_connections("inet"):
                if socket.status == psutil.CONN_LISTEN or not socket.raddr:
                    found[f"{socket.laddr.ip}:{socket.laddr.port}"] = process.name()
    return found


def test_no_other_machine_can_reach_a_local_cluster():
    before, environment = listening(), dict(os.environ)
    with connected("local", 1) as connection:
        assert connection.get(connection.remote(lambda: os.getpid()).remote()) != os.getpid()
        opened = {address: name for address, name in listening().items() if address not in before}
    assert {"gcs_server", "raylet"} <= set(opened.values())
    elsewhere = {k: name for k, name in opened.items() if not k.startswith(("127.0.0.1:", "::1:", "::ffff:127.0.0.1:"))}
    assert elsewhere == {}
    assert os.environ.get(CLUSTER_VARIABLE) == environment.get(CLUSTER_VARIABLE)


@pytest.mark.parametrize("address", ["192.0.2.2:6379", "[2001:db8::1]:6379", "0.0.0.0:6379"])
def test_a_ray_that_lets_others_in_all_the_same_is_told(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ray, "init", lambda **options: None)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address=address))
    with pytest.warns(RuntimeWarning, match="lets other machines reach its ports"), connected("local", 1):
        pass


def test_an_address_where_nobody_answers_is_named_at_once():
    began = time.monotonic()
    with pytest.raises(ConnectionError, match=r"no Ray cluster answers at '127\.0\.0\.1:1': Connection refused"):
        scale.evaluate(PONG, "tracker", "chaser", matches=2, address="127.0.0.1:1")
    assert time.monotonic() - began < 5.0


@pytest.mark.slow
def test_kills_change_nothing(killer: Callable[[int, float], Killer]):
    one = evaluation.evaluate(PONG, fast_twin(), "tracker", matches=2000, names=("still", "tracker"))
    notes: list[str] = []
    with killer(20, 1.5) as playing:
        many = scale.evaluate(
            PONG,
            SLOWER_PLAYER,
            "tracker",
            matches=2000,
            names=("still", "tracker"),
            actors=2,
            progress=lambda done, total, note: notes.append(note),
        )
    assert losses_in(notes) == playing.killed == 20
    same(one, many)


@pytest.mark.slow
def test_kills_change_no_evaluation_of_jsbsim(killer: Callable[[int, float], Killer]):
    fight: dict[str, Any] = {"a": "expert", "b": "lead_pursuit", "matches": 200, "engine": "jsbsim"}
    one = evaluation.evaluate("palaestra/UcavDogfight-v2", **fight, workers=2)
    notes: list[str] = []
    with killer(20, 2.0) as playing:
        many = scale.evaluate(
            "palaestra/UcavDogfight-v2", **fight, actors=2, progress=lambda done, total, note: notes.append(note)
        )
    print(f"{playing.killed} kills, {losses_in(notes)} lost")
    assert losses_in(notes) == playing.killed == 20
    same(one, many)


@pytest.mark.slow
def test_an_interrupted_evaluation_goes_on():
    command = (
        "from palaestra import scale; scale.evaluate({!r}, {!r}, 'tracker', matches=100, actors=2, "
        "progress=lambda done, total, note: print(done, flush=True))"
    )
    words = [sys.executable, "-c", command.format(PONG, SLOWER_PLAYER)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert next(line for line in process.stdout if int(line) > 0)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert "of 100 matches are kept in runs/scale/palaestra-TeamPong-v0-" in error
    (file,) = Path("runs", "scale").iterdir()
    begun: list[int] = []
    many = scale.evaluate(
        PONG, SLOWER_PLAYER, "tracker", matches=100, actors=2, progress=lambda done, total, note: begun.append(done)
    )
    assert begun[0] > 0
    assert not file.exists()
    same(evaluation.evaluate(PONG, fast_twin(), "tracker", matches=100, names=(SLOWER_PLAYER, "tracker")), many)


# --------------------------------------------------------------------------------------------------------- on a cluster


@pytest.mark.usefixtures("connected_user")
def test_a_tournament_outlives_a_process_and_a_machine(cluster: Any, killer: Callable[[int, float], Killer]):
    players = {**{name: SIX[name] for name in SIX if name != "network"}, "slow": "scale_players:slow"}
    one = evaluation.tournament(PONG, {**players, "slow": fast_twin()}, matches=40)
    notes: list[str] = []
    nodes = [cluster.add_node(num_cpus=1)]

    def progress(done: int, total: int, note: str) -> None:
        notes.append(note)
        if done >= 80 and nodes:
            threading.Thread(target=cluster.remove_node, args=(nodes.pop(), False)).start()

    with killer(1, 0.5) as playing:
        many = scale.tournament(PONG, players, matches=40, progress=progress)
    assert playing.killed == 1
    assert not nodes
    assert losses_in(notes) >= 1
    for a, b in zip(one.tables, many.tables, strict=True):
        same(a, b)
    assert one.as_dict() == many.as_dict()


@pytest.mark.usefixtures("connected_user")
def test_strangers_are_told_what_is_wrong_and_other_work_goes_on(monkeypatch: pytest.MonkeyPatch):
    @ray.remote(num_cpus=0)
    def other_work() -> int:
        time.sleep(1.0)
        return os.getpid()

    beside = [other_work.remote() for _ in range(10)]

    def play(**given: Any) -> MatchTable:
        return scale.evaluate(**{"id": PONG, "a": "tracker", "b": "chaser", "matches": 16, "actors": 2, **given})

    with monkeypatch.context() as changed:
        changed.setattr(pieces, "__version__", "99.0")
        with pytest.raises(scale.WorkerRefused, match=rf"palaestra there: {palaestra.__version__}, here: 99.0"):
            play()
    with monkeypatch.context() as changed:
        changed.setattr(pieces, "rules_digest", lambda game: "0" * 16)
        with pytest.raises(scale.WorkerRefused, match=f"the rules of {PONG} there: .*, here: 0000000000000000"):
            play()
    with monkeypatch.context() as changed:
        changed.setattr(pieces, "row_data", lambda row: ("only_here:game", "", "", {}))
        registry.register("test/OnlyHere-v0", registry.row(PONG).factory)
        changed.setattr(by_ray, "row_data", pieces.row_data)
        try:
            with pytest.raises(ImportError, match="a worker of the cluster cannot import 'only_here'"):
                play(id="test/OnlyHere-v0")
        finally:
            del registry.ROWS["test/OnlyHere-v0"]
    with pytest.raises(FileError, match=r"missing\.safetensors: there is no such file"):
        play(a="missing.safetensors")
    with pytest.raises(ValueError, match="there is no module 'nobody'"):
        play(a="nobody:player")
    same(evaluation.evaluate(PONG, "tracker", "chaser", matches=16), play())
    assert len(ray.get(beside)) == 10
