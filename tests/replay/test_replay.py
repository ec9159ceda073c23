"""A replay repeats a run bitwise, locates a divergence, and refuses runs that it cannot repeat."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from games import two_team

import palaestra
from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.simulation import Simulation
from palaestra.game import Continuous, Field, Game, Role
from palaestra.replay import Recorder, Replay, ReplayError, export, frames, load, record, to_csv, to_gif, verify
from palaestra.replay import file as replay_file
from palaestra.replay.export import gif_speed, write_gif

RAID = "test/Raid-v0"
CARTPOLE = "palaestra/CartPole-v0"
ORCHARD = "test/Orchard-v0"
palaestra.register(RAID, "games.two_team:game", family="test")
palaestra.register(ORCHARD, "games.orchard:game", family="test")


def random_actions(sim, rng: np.random.Generator) -> dict:
    n = sim.num_envs
    guard = {
        "move": rng.integers(0, 4, (n, 2)),
        "trigger": rng.integers(0, 2, (n, 2)),
        "effort": rng.uniform(0.1, 0.9, (n, 2)),
    }
    return {"scout": rng.integers(0, 4, (n, 3)), "guard": guard}


def play_raid(steps: int = 60, num_envs: int = 3, check_every: int = 1, **options) -> tuple[Replay, Simulation]:
    sim = palaestra.make_batch(RAID, num_envs, **options)
    rng = np.random.default_rng(5)
    with Recorder(sim, check_every=check_every) as recorder:
        sim.reset(seed=11)
        for _ in range(steps):
            sim.step(random_actions(sim, rng))
    return recorder.replay(), sim


def push_right(observations: np.ndarray) -> np.ndarray:
    return (observations[..., 2] > 0).astype(np.int64)


def record_cartpole(**options) -> Replay:
    return record(CARTPOLE, {"cart": push_right}, seed=3, **{"horizon": 60, **options})


@pytest.mark.parametrize("mode", ["next_step", "same_step", "off"])
def test_a_replay_repeats_bitwise_in_every_autoreset_mode(mode: str):
    replay, sim = play_raid(autoreset_mode=mode)
    assert verify(replay).ok
    *_, last = frames(replay)
    assert last.states.tobytes() == sim.states.tobytes()
    assert last.info["illegal"].sum() > 0, "illegal actions are repeated, not their no-ops"


def test_scripts_play_again_by_themselves_and_python_opponents_by_what_they_did():
    sim = palaestra.make_batch(RAID, 4, opponents={"red": "mix", "blue": idle_blue})
    with Recorder(sim) as recorder:
        sim.reset(seed=2)
        for _ in range(50):
            sim.step()
    replay = recorder.replay()
    assert replay.players == {"red": "mix", "blue": "idle_blue"}
    assert verify(replay).ok


def idle_blue(observations: dict) -> dict:
    n = len(observations["scout"])
    guard = {"move": np.ones((n, 1), int), "trigger": np.ones((n, 1), int), "effort": np.full((n, 1), 0.5)}
    return {"scout": np.ones((n, 1), int), "guard": guard}


def test_whatever_comes_from_outside_is_repeated():
    sim = palaestra.make_batch(RAID, 2, opponents={"red": "runner", "blue": "fighter"}, autoreset_mode="off", nodes=8)
    kept: Any = None
    with Recorder(sim) as recorder:
        sim.reset()  # seeds of the operating system
        for step in range(60):
            if step == 5:
                sim.set_parameters(damage=2.0, hit_chance=np.array([0.1, 1.0]))
            if step == 10:
                kept = sim.snapshot()
            if step == 20:
                sim.set_opponent("blue", "mix", lanes=np.array([True, False]))
            if step == 25:
                sim.restore(kept)
            if step == 30:
                sim.seed(99, np.array([False, True]))
            if step == 35:
                sim.set_opponent("red_0", "random", lanes=[1])
                sim.refresh()
            if step == 40:
                sim.reset(np.array([True, False]), seed=7)
            sim.step()
    assert verify(recorder.replay()).ok


def test_a_recording_starts_with_the_reset_of_all_lanes_and_ends_with_stop():
    sim = palaestra.make_batch(CARTPOLE, 2)
    sim.reset(seed=0)
    recorder = Recorder(sim)
    sim.step(np.zeros((2, 1), np.int64))
    with pytest.raises(ReplayError, match="nothing was recorded"):
        recorder.replay()
    sim.reset(seed=1)
    sim.step(np.zeros((2, 1), np.int64))
    recorder.stop()
    sim.step(np.zeros((2, 1), np.int64))
    assert recorder.replay().steps == 1


def test_a_match_that_makes_room_for_the_next_at_once_is_listed_with_its_own_end():
    sim = palaestra.make_batch(CARTPOLE, 2, autoreset_mode="same_step")
    ended = []
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        for decision in range(1, 21):
            sim.step(np.ones((2, 1), np.int64))
            ended += [(lane, decision, "fell") for lane in np.flatnonzero(sim.terminated).tolist()]
    matches = [(match["lane"], match["step"], match["end_reason"]) for match in recorder.replay().matches]
    assert matches == ended
    assert {lane for lane, *_ in ended} == {0, 1}


def test_a_mask_may_be_used_again_after_a_recorded_reset():
    sim = palaestra.make_batch(CARTPOLE, 2)
    mask = np.array([True, False])
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        sim.reset(mask)
        mask[:] = ~mask
        sim.reset(mask)
    assert recorder.replay().reset_lanes.tolist() == [[True, True], [True, False], [False, True]]


def test_a_refused_action_is_no_part_of_the_run():
    sim = palaestra.make_batch(CARTPOLE, 1)
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        with pytest.raises(ValueError, match="not an integer in"):
            sim.step(np.array([[2]]))
        sim.step(np.array([[1]]))
    assert recorder.replay().steps == 1
    assert verify(recorder.replay()).ok


def test_a_face_is_recorded_through_its_simulation():
    import gymnasium

    env = gymnasium.make(CARTPOLE, gravity_mps2=3.0)
    with Recorder(env.unwrapped.sim) as recorder:  # type: ignore[attr-defined]
        for seed in range(2):
            env.reset(seed=seed)
            while not any(env.step(1)[2:4]):
                pass
    replay = recorder.replay()
    assert [m["end_reason"] for m in replay.matches] == ["fell", "fell"]
    assert replay.keywords == {"gravity_mps2": 3.0}
    assert verify(replay).ok


def test_the_file_gives_back_what_was_recorded(tmp_path: Path):
    replay = record_cartpole(num_envs=2)
    replay.save(tmp_path / "match.npz")
    again = load(tmp_path / "match.npz")
    for name in replay_file.HEADER:
        assert getattr(again, name) == getattr(replay, name), name
    for name in replay_file.ARRAYS:
        np.testing.assert_array_equal(getattr(again, name), getattr(replay, name), name)
    assert verify(again).digest == replay.digest


def test_equal_runs_give_equal_files(tmp_path: Path):
    for name in "ab":
        record_cartpole().save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_appears_complete_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "match.npz"
    target.write_bytes(b"the old one")

    def breaks(file, **content):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", breaks)
    with pytest.raises(OSError, match="disk full"):
        record_cartpole().save(target)
    assert target.read_bytes() == b"the old one"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "foreign", "empty", "npy"])
def test_a_file_that_is_no_whole_replay_is_refused(damage: str, tmp_path: Path):
    path = tmp_path / "match.npz"
    record_cartpole().save(path)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flip":
        with zipfile.ZipFile(path) as archive:
            data[archive.getinfo("checks.npy").header_offset + 100] ^= 0x10
    elif damage == "text":
        data = bytearray(b"a file of another program\n" * 40)
    elif damage == "empty":
        data = bytearray()
    path.write_bytes(data)
    if damage == "foreign":
        np.savez(path, something=np.zeros(3))
    elif damage == "npy":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    with pytest.raises(ReplayError, match=r"match\.npz is (no replay|damaged)") as refusal:
        load(path)
    assert "\n" not in str(refusal.value)


def test_a_changed_file_is_refused_by_its_checksum(tmp_path: Path):
    path = tmp_path / "match.npz"
    record_cartpole().save(path)
    with np.load(path) as archive:
        content = dict(archive)
    content["actions"] = 1 - content["actions"]
    np.savez_compressed(path, **content)
    with pytest.raises(ReplayError, match="checksum does not match"):
        load(path)


def test_a_newer_format_asks_for_a_newer_palaestra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "match.npz"
    now = replay_file.FORMAT
    monkeypatch.setattr(replay_file, "FORMAT", now + 1)
    record_cartpole().save(path)
    monkeypatch.undo()
    newer = f"has format {now + 1}, this palaestra reads format {now}: take a newer palaestra"
    with pytest.raises(ReplayError, match=newer):
        load(path)


def altered(replay: Replay, **values) -> Replay:
    kept = {name: getattr(replay, name) for name in (*replay_file.HEADER, *replay_file.ARRAYS)}
    return Replay(**{**kept, **values})


def test_a_divergence_names_its_lane_and_decision():
    replay, _ = play_raid(autoreset_mode="off", num_envs=3)
    actions = replay.actions.copy()
    red_scout = replay.actions[8, 1, 0]
    actions[8, 1, 0] = 0 if red_scout else 1
    printed = verify(altered(replay, actions=actions))
    assert (printed.ok, printed.lane, printed.last_step) == (False, 1, 9)
    assert str(printed) == "the replay diverges: lane 1, decision 9"


def test_a_divergence_between_two_checks_names_both():
    replay, _ = play_raid(autoreset_mode="off", num_envs=3, check_every=10)
    assert verify(replay).ok
    actions = replay.actions.copy()
    actions[8, 1, 0] = 0 if actions[8, 1, 0] else 1
    printed = verify(altered(replay, actions=actions))
    assert (printed.ok, printed.lane, printed.first_step, printed.last_step) == (False, 1, 0, 9)
    assert "lane 1, between decision 1 and 9" in str(printed)


def test_another_digest_is_no_proof():
    replay = record_cartpole()
    printed = verify(altered(replay, digest="0" * 64))
    assert not printed.ok
    assert "its digest is not that of the file" in str(printed)


def test_other_rules_are_refused(monkeypatch: pytest.MonkeyPatch):
    replay, _ = play_raid()
    monkeypatch.setattr(two_team, "GOALS", 2)
    with pytest.raises(ReplayError, match=r"the rules of test/Raid-v0 are other ones \(digest \w+, not \w+\)"):
        verify(replay)


@pytest.mark.check
def test_a_game_of_many_sizes_repeats_in_its_own_size_alone():
    replay = record(ORCHARD, num_envs=2, pickers=2, horizon=6)
    assert verify(replay).ok
    assert replay.actions.shape == (6, 2, 10)  # the words that users see
    other = altered(replay, keywords={"pickers": 4, "horizon": 6})
    with pytest.raises(ReplayError, match=r"the rules of test/Orchard-v0 are other ones \(digest \w+, not \w+\)"):
        verify(other)


def test_actions_of_the_caller_in_a_game_of_many_sizes_are_recorded():
    sim = palaestra.make_batch(ORCHARD, 2, autoreset_mode="off", horizon=4)
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        for _ in range(4):
            carrier = {"loads": np.array([[[103, 0], [0, 204]]] * 2), "force": np.full((2, 2, 2), 0.5)}
            sim.step({"picker": np.array([[1, 2, 0]] * 2), "carrier": carrier})
    assert sim.states["count"][0].tolist() == [4, 8, 0, 4 * 103, 4 * 204, 0, 0]
    assert verify(recorder.replay()).ok
    assert [frame.states["count"][0, 4] for frame in frames(recorder.replay())] == [0, 204, 408, 612, 816]


def test_another_version_of_the_game_is_refused():
    replay = altered(record_cartpole(), id="palaestra/CartPole-v9")
    with pytest.raises(ReplayError, match="CartPole is not played as -v9 here but as palaestra/CartPole-v0"):
        verify(replay)


def test_another_engine_is_refused_for_a_per_platform_game():
    replay = altered(record_cartpole(), engine="Plan9 sparc")
    with pytest.raises(ReplayError, match="with the engine and platform that recorded it: Plan9 sparc; this is "):
        verify(replay)


def test_a_cross_platform_game_repeats_on_every_platform(monkeypatch: pytest.MonkeyPatch):
    replay, _ = play_raid()
    monkeypatch.setattr("platform.machine", lambda: "another")
    assert replay.engine == ""
    assert verify(replay).ok


RULES = """
from palaestra.game import Continuous, Field
from palaestra.game import Game, Role

LIMIT = 1.0

def reset(s, world):
    s.x = 0.5

def step(s, world, actions, rewards, scratch):
    return s.x > LIMIT

def observe(s, world, observations, scratch):
    observations.agent[0].x = s.x

ROLE = Role("agent", ("red_0",), (Field("x", (), 0, 1),), (Continuous("push"),))
GAME = Game(name="Tiny", roles=(ROLE,), state=(("x", "f8"),), reset=reset, step=step, observe=observe)
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (
            "    s.x = 0.5",
            '    """The rules,\n    in words."""\n\n    # a remark\n    s.x  =  0.5  # and another',
            True,
        ),
        ("s.x > LIMIT", "s.x >= LIMIT", False),
        ("LIMIT = 1.0", "LIMIT = 2.0", False),
        ('state=(("x", "f8"),)', 'state=(("x", "f8"), ("y", "f8"))', False),
        ("Continuous(", "Continuous(high=2.0, name=", False),
    ],
)
def test_the_digest_of_the_rules_sees_what_decides_and_no_remarks(old: str, new: str, same: bool, tmp_path: Path):
    digests = []
    for number, text in enumerate((RULES, RULES.replace(old, new))):
        path = tmp_path / f"rules_{number}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        digests.append(rules_digest(module.GAME))
    assert (digests[0] == digests[1]) is same


def test_a_simulation_made_by_hand_cannot_be_recorded():
    with pytest.raises(ReplayError, match=r"make it by palaestra\.make_batch"):
        Recorder(KernelSimulation(two_team.game(), 1))


def test_a_keyword_that_no_file_can_hold_is_refused():
    sim = SimpleNamespace(origin=(RAID, {"nodes": object()}))
    with pytest.raises(ReplayError, match=r"made with nodes=<object .*>, which a file cannot hold"):
        Recorder(sim)  # type: ignore[arg-type]


class Glider:
    """An engine with a memory of its own: its bodies do not say how fast they sink."""

    body_field, command_fields = "body", ("pull",)

    def __init__(self, game: Game, lanes: int, threads: int) -> None:
        self.sinking = np.zeros(lanes)

    def load(self, states, lanes) -> None:
        self.sinking[lanes] = 0.0

    def advance(self, states, lanes) -> None:
        self.sinking[lanes] += 0.1 - states["body"]["pull"][lanes, 0]
        states["body"]["height"][lanes, 0] -= self.sinking[lanes]

    def close(self) -> None: ...


def glider_reset(s, world):
    s.body[0].height = 10.0


def glider_command(s, world, actions, scratch):
    s.body[0].pull = actions.pilot[0].pull


def evaluate_glider(s, world, rewards, scratch):
    return s.body[0].height < 0.0


def glider_observe(s, world, observations, scratch):
    observations.pilot[0].height = s.body[0].height


def glider_game() -> Game:
    body = np.dtype([("pull", "f8"), ("height", "f8")], align=True)
    pilot = Role("pilot", ("red_0",), (Field("height", (), -99, 99),), (Continuous("pull", (), 0, 0.15),))
    return Game(
        name="Glider",
        roles=(pilot,),
        state=(("body", body, (1,)),),
        reset=glider_reset,
        observe=glider_observe,
        command=glider_command,
        evaluate=evaluate_glider,
        physics=f"{__name__}:Glider",
    )


@pytest.fixture
def glider(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    palaestra.register("test/Glider-v0", glider_game, family="test")
    yield palaestra.make_batch("test/Glider-v0", 2)
    del registry.ROWS["test/Glider-v0"]


def test_a_game_with_an_engine_repeats(glider):
    rng = np.random.default_rng(0)
    with Recorder(glider) as recorder:
        glider.reset(seed=0)
        for _ in range(40):
            glider.step(rng.uniform(0, 0.15, (2, 1, 1)))
    assert verify(recorder.replay()).ok


def test_an_engine_that_was_put_back_repeats(glider):
    rng = np.random.default_rng(0)
    with Recorder(glider) as recorder:
        glider.reset(seed=0)
        glider.step(rng.uniform(0, 0.15, (2, 1, 1)))
        kept = glider.snapshot()
        for step in range(20):
            if step == 12:
                glider.restore(kept)
            glider.step(rng.uniform(0, 0.15, (2, 1, 1)))
    assert verify(recorder.replay()).ok


def test_frames_come_after_the_reset_and_every_decision():
    replay = record_cartpole()
    steps = [int(sim.states["steps"][0]) for sim in frames(replay)]
    assert steps == list(range(replay.steps + 1))


def test_a_gif_of_one_palette_shows_all_its_pictures(tmp_path: Path):
    image = pytest.importorskip("PIL.Image", reason="pictures need the extra palaestra[render]")

    def picture(number: int) -> np.ndarray:
        shown = np.full((90, 160, 3), (20, 28, 37), np.uint8)
        shown[10:30, 10 * number : 10 * number + 20] = (255, 112, 86)
        shown[60:80, 20:40] = (0, 40 * number, 90)
        return shown

    assert write_gif(map(picture, range(6)), tmp_path / "film.gif", 50) == 6
    with image.open(tmp_path / "film.gif") as gif:
        assert (gif.n_frames, gif.info["duration"], gif.info["loop"]) == (6, 50, 0)
        for number in range(6):
            gif.seek(number)
            np.testing.assert_allclose(np.asarray(gif.convert("RGB")).astype(int), picture(number), atol=9)


def test_a_gif_shows_the_match(tmp_path: Path):
    image = pytest.importorskip("PIL.Image")
    replay = record_cartpole(horizon=20)
    count = to_gif(replay, tmp_path / "match.gif", every=5)
    with image.open(tmp_path / "match.gif") as picture:
        assert (picture.n_frames, picture.size) == (count, (600, 400))
        assert picture.info["duration"] == 100
    assert count == 5
    to_gif(replay, tmp_path / "small.gif", every=5, render_size=(300, 100))
    with image.open(tmp_path / "small.gif") as picture:
        assert picture.size == (300, 100)


@pytest.mark.parametrize(
    ("decisions", "fps", "speed"),
    [
        (20, 50.0, 1),  # short and fast
        (110, 10.0, 1),  # 11 s
        (2000, 10.0, 19),  # 200 s
        (55, 2.0, 4),  # 8 pictures a second
        (150, 2.0, 7),  # 75 s: 8 pictures a second would not do
        (99, 3.0, 3),
        (50, 1 / 3.6, 29),
        (4, 1.0, 1),  # a few texts to read
        (30, 2.0, 3),  # 15 s: no match is hurried below 4 s
        (0, 2.0, 1),
    ],
)
def test_a_gif_of_a_long_match_or_a_slow_game_is_faster_than_its_clock(decisions: int, fps: float, speed: int):
    assert gif_speed(decisions, fps) == speed


@pytest.mark.check
def test_a_gif_ends_with_the_match_of_its_lane_and_tells_its_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    scripts = {"red": "striker", "blue": "striker"}
    sim = palaestra.make_batch("palaestra/GridSoccer-v0", 4, opponents=scripts, autoreset_mode="off")
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        for _ in range(30):
            sim.step()
    replay = recorder.replay()
    last = max(replay.matches, key=lambda match: match["step"])
    assert 12 <= last["step"] < replay.steps
    monkeypatch.setattr(export, "SHORTEST_S", 1.0)
    for speed, below, picture_ms in ((None, 2 * 15, 110), (1, 0, 330), (2.5, 2 * 15, 130)):
        count = to_gif(replay, tmp_path / "match.gif", lane=last["lane"], speed=speed)
        assert count == last["step"] + 1
        with image.open(tmp_path / "match.gif") as gif:
            assert gif.size == (600, 442 + below)
            assert gif.info["duration"] == picture_ms
            gif.seek(gif.n_frames - 1)
            assert gif.info["duration"] == 1000
            strip = np.asarray(gif.convert("RGB"))[442:]
        assert (strip.max() > 200) if below else not strip.size


def test_a_table_has_a_row_for_every_operation(tmp_path: Path):
    replay = record_cartpole()
    rows = to_csv(replay, tmp_path / "match.csv")
    lines = (tmp_path / "match.csv").read_text().splitlines()
    assert len(lines) == rows + 1 == replay.steps + 2
    columns = dict(zip(lines[0].split(","), lines[-1].split(","), strict=True))
    assert float(columns["parameters.horizon"]) == 60
    assert int(columns["steps"]) == replay.steps


@pytest.mark.parametrize("export", [to_gif, to_csv])
def test_an_export_that_fails_leaves_the_old_file_alone(export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("PIL")
    path = tmp_path / "match.gif"
    path.write_bytes(b"old")
    replay = record_cartpole(horizon=4)

    def full_disk(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        export(replay, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_pictures_of_another_kind_than_gif_are_refused(tmp_path: Path):
    with pytest.raises(ValueError, match=r"match\.mp4: a replay is drawn as an animated GIF: name the file \*\.gif"):
        to_gif(record_cartpole(), tmp_path / "match.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("export", [to_gif, to_csv])
def test_an_absent_lane_is_refused(export, tmp_path: Path):
    with pytest.raises(ReplayError, match="has lanes 0 to 0, not 1"):
        export(record_cartpole(), tmp_path / "x", lane=1)
