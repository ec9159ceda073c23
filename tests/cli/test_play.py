"""Playing by hand: assignment of agents, effects of keys, pictures, windows and refusals."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from games import duel

import palaestra
from palaestra.cli.keyboard import REST_KEY
from palaestra.cli.play import Session, Window
from palaestra.core.compile.batch_loop import CALLER, RANDOM
from palaestra.replay import load, verify

pytest.importorskip("PIL")
DUEL, UNSEEN, CARTPOLE = "play/Duel-v0", "play/Unseen-v0", "palaestra/CartPole-v0"
SPOKEN = "play/Spoken-v0"
palaestra.register(SPOKEN, "testing.broken_games:spoken", family="test")
DEPOT, MIXED = "play/Depot-v0", "play/MixedDepot-v0"
palaestra.register(DEPOT, "games.depot:game", family="test")
palaestra.register(MIXED, "games.depot:game", family="test", kind="mixed")
palaestra.register(DUEL, "testing.broken_games:duel", family="test")
palaestra.register(UNSEEN, lambda: duel.game(render=None), family="test")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A match is played for a few decisions: the kernels of these games take the compiler longer."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def started(id: str = DUEL, *agents: str, **options: Any) -> Session:
    session = Session(id, agents or None, **options)
    session.start()
    return session


def test_all_others_are_played_by_the_games_choice():
    assert started().sim.states["assigned_player"][0].tolist() == [CALLER, 0, 0, 0]
    session = started(DUEL, "blue_1", opponent="walker:0.5", teammates="random")
    assert session.sim.states["assigned_player"][0].tolist() == [1, 1, RANDOM, CALLER]
    assert session.sim.states["strength"][0].tolist() == [0.5, 0.5, 1, 1]


def test_keys_move_the_agent_alone():
    session = started(DUEL, "red_1", opponent="walker", wait=False)
    session.sim.states["place"][0, 1] = 2
    assert [key.name for key in session.keyboard.keys] == ["1", "2", "3", "4"]
    session.decide(["3"])
    assert session.sim.states["place"][0, 1] == 3
    session.decide([])
    assert session.sim.states["place"][0, 1] == 3, "an agent without a pressed key waits"
    assert session.sim.actions[0, 1] == 0


def test_where_the_match_waits_no_agent_moves_before_the_player():
    session = started(DUEL, wait=True)
    before = session.sim.states.tobytes()
    assert not session.decide([])
    assert not session.decide(["x"])
    assert session.sim.states.tobytes() == before
    assert session.awaits_a_key
    assert session.decide(["1"])
    assert session.sim.states["steps"][0] == 1
    assert session.decide(["."]), "a key that does nothing passes the decision"


def test_it_waits_for_every_agent_of_the_player():
    session = started(DUEL, "red_0", "red_1", wait=True)
    session.sim.states["place"][0, :2] = 2
    assert [(k.agent, k.name) for k in session.keyboard.keys][3:5] == [("red_0", "4"), ("red_1", "q")]
    assert not session.decide(["3"])
    assert session.decide(["w"])
    assert session.sim.states["place"][0, :2].tolist() == [3, 1]


def test_it_does_not_wait_for_the_dead():
    session = started(DUEL, "red_0", wait=True)
    session.sim.states["alive"][0, 0] = session.sim.states["acting"][0, 0] = 0
    assert session.decide([])


@pytest.mark.parametrize(("id", "waits"), [(DUEL, False), (CARTPOLE, False)])
def test_fast_games_do_not_wait_by_default(id: str, waits: bool):
    assert Session(id).wait == waits
    assert Session(id, wait=not waits).wait != waits


def test_slow_games_wait():
    assert Session("palaestra/GridSoccer-v0").wait


def test_the_programs_keys_pause_repeat_continue_and_quit():
    session = started(DUEL, wait=False, seed=5)
    first = session.sim.states["place"].copy()
    session.decide(["1"])
    assert session.command("space")
    assert not session.decide(["1"])
    session.command("space")
    assert session.decide(["1"])
    session.command("n")
    assert (session.seed, session.sim.lane_seeds[0], session.sim.states["steps"][0]) == (6, 6, 0)
    session.command("r")
    assert session.seed == 6
    session.seed = 4
    session.command("return")
    np.testing.assert_array_equal(session.sim.states["place"], first)
    assert not session.command("escape")


def test_the_score_and_the_winner_are_printed():
    session = started(CARTPOLE)
    while session.decide(["right"]):
        pass
    assert session.over
    steps = int(session.sim.states["steps"][0])
    assert session.results == [f"seed 0: fell after {steps} decisions, score +{steps}"]
    duel = started(DUEL, horizon=2, wait=False)
    while duel.decide([]):
        pass
    assert duel.verdict() == "no winner (horizon)"
    duel.sim.info["winner"][0], duel.sim.info["end_reason"][0] = 1, 2
    assert duel.verdict() == "blue won (wiped_out)"


def test_the_picture_has_the_legend_below_it():
    session = started(CARTPOLE)
    bare, whole = session.sim.render(), session.frame()
    np.testing.assert_array_equal(whole[: bare.shape[0]], bare)
    assert (whole.shape[1], whole.dtype) == (bare.shape[1], np.uint8)
    assert whole.shape[0] > bare.shape[0] + 40
    session.decide(["right"])
    assert (session.frame()[bare.shape[0] :] != whole[bare.shape[0] :]).any(), "the key that is held is marked"


def test_a_click_means_the_same_on_a_picture_of_another_size():
    session = started(DEPOT, "red_0", "red_1", wait=False, opponent="random", render_size=(4 * 200, 128))
    height, width, _ = np.asarray(session.sim.draw(0)).shape
    zoom = min(800 / width, 128 / height)
    left, top = (800 - round(zoom * width)) // 2, (128 - round(zoom * height)) // 2
    assert session.click(int(left + zoom * (8 * 11 + 3.5)), top), "place 11 is next to place 0"
    assert session.decide([])
    assert session.sim.states["here"][0, :2].tolist() == [11, 1]


def test_a_click_is_the_action_of_the_selected_agent():
    session = started(DEPOT, "red_0", "red_1", wait=False, opponent="random")
    assert session.selected == "red_0"
    assert session.click(8 * 11 + 3, 0), "place 11 is next to place 0"
    assert session.decide([])
    assert session.sim.states["here"][0, :2].tolist() == [11, 1]
    session.command("tab")
    assert session.click(8 * 2, 5)
    assert session.decide(["1"]), "the click wins over keys"
    assert session.sim.states["here"][0, :2].tolist() == [11, 2]
    assert session.decide([]), "a click counts once"
    assert session.sim.states["here"][0, :2].tolist() == [11, 2]
    session.command("tab")
    assert session.selected == "red_0"


def test_a_click_may_select_an_agent_that_the_player_moves():
    session = started(DEPOT, "red_0", "red_1", wait=True, opponent="random")
    of_red_1, of_blue_0 = (8 * 1, 8 * 1), (8 * int(session.sim.states["here"][0, 2]), 8 * 2)
    assert session.click(*of_red_1)
    assert session.selected == "red_1"
    assert not session.decide([]), "it is no action"
    assert not session.click(*of_blue_0)
    assert session.selected == "red_1"


@pytest.mark.parametrize(("x", "y"), [(8 * 5, 0), (-1, 0), (8 * 11, -1), (8 * 12 + 88, 0), (8 * 11, 32)])
def test_a_click_that_means_nothing_is_no_action(x: int, y: int):
    session = started(DEPOT, "red_0", wait=False)
    assert not session.click(x, y)


def test_clicks_are_ignored_while_the_match_pauses_and_in_games_without_clicks():
    session = started(DEPOT, "red_0", wait=False)
    session.command("space")
    assert not session.click(8 * 11, 0)
    assert not started(CARTPOLE).click(5, 5)


def test_a_composite_action_can_be_clicked():
    session = started(MIXED, "red_0", wait=True)
    session.click(8, 0)
    assert session.decide([]), "the click is what the match has waited for"
    assert session.sim.states["here"][0, 0] == 1
    assert session.sim.buffers.action_records["driver"]["effort"][0, 0] == 0.5


def test_a_script_of_keys_may_click(run, refused):
    words = ("play", DEPOT, "--agent", "red_0", "red_1", "--opponent", "random")
    printed = run(*words, "--headless", "click:89,0+tab+click:16,0,.")
    assert printed.out == "seed 0: not over after 2 decisions, score +1\n"
    assert "a click on 40, 0 does nothing for red_1" in refused(run(*words, "--headless", "tab,click:40,0"))
    keys = run("play", DEPOT, "--agent", "red_0", "red_1", "--keys").out
    assert "click:X,Y  an action, by a click on that pixel of the picture" in keys
    assert "tab        next agent" in keys
    assert "tab" not in run("play", "CartPole", "--keys").out


def test_the_selected_agent_is_marked_below_the_picture():
    session = started(DEPOT, "red_0", "red_1")
    before = session.frame()
    session.command("tab")
    assert (session.frame() != before).any()


def test_a_window_reads_the_mouse(monkeypatch: pytest.MonkeyPatch):
    pygame = pytest.importorskip("pygame")
    session = started(DEPOT, "red_0", wait=True)
    click = pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=pygame.BUTTON_LEFT, pos=(8 * 11, 3))
    wheel = pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=pygame.BUTTON_WHEELUP, pos=(8, 3))
    quit = pygame.event.Event(pygame.QUIT)
    pictures = iter([[wheel], [click], [], [quit]])
    monkeypatch.setattr(pygame.event, "get", lambda: next(pictures))
    Window(session).open()
    assert (session.sim.states["steps"][0], session.sim.states["here"][0, 0]) == (1, 11)


def test_the_command_prints_the_keys(run):
    printed = run("play", "CartPole", "--keys")
    assert printed.code == 0
    assert "cart_0  left    left" in printed.out
    assert "escape  quit" in printed.out


def test_a_script_of_keys_plays_without_a_window_and_is_recorded(run, tmp_path: Path):
    keys = "right," * 12 + "n,left,left+right,,space,left,space,left,escape,left"
    printed = run("play", "CartPole", "--seed", 3, "--headless", keys, "--record", tmp_path / "match.npz")
    assert printed.code == 0
    first, second, third = printed.out.splitlines()
    assert first.startswith("seed 3: fell after ")
    assert second == "seed 4: not over after 4 decisions, score +4"
    assert third.startswith(f"{tmp_path / 'match.npz'}: palaestra replay")
    replay = load(tmp_path / "match.npz")
    assert replay.players == {"cart": "caller"}
    assert verify(replay).ok


def test_an_agent_that_speaks_is_played_by_typing(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "said.npz"
    monkeypatch.setattr("sys.stdin", io.StringIO("pull 0.6\nPULL!\npull 0.5\n" + "pull -0.2\n" * 60))
    printed = run("play", SPOKEN, "--seed", "3", "--record", path).out
    assert printed.splitlines()[0].startswith("red_0 reads: ")
    assert "'PULL!' is not in Text(" in printed
    assert re.search(r"seed 3: blue won \(dragged_over\) after \d+ decisions, score -1", printed)
    assert verify(load(path)).ok


def test_who_stops_typing_ends_the_match(run, refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("pull 0.6"))
    assert "seed 0: not over after 1 decisions" in run("play", SPOKEN, "--agent", "blue_0").out
    assert "--headless is for keys: here you type words" in refused(run("play", SPOKEN, "--headless", "a"))


def test_a_replay_names_the_teammates(run, tmp_path: Path):
    assert run("play", DUEL, "--headless", "1,1", "--teammates", "walker:0.5", "--record", tmp_path / "m.npz").code == 0
    replay = load(tmp_path / "m.npz")
    assert replay.players == {"red": "red_0 caller; red_1 walker:0.5", "blue": "striker"}
    assert verify(replay).ok


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((UNSEEN,), f"{UNSEEN} has no picture"),
        ((DUEL, "--agent", "red_7"), r"Duel has no agent 'red_7', did you mean 'red_1'? (it has red_0, "),
        ((DUEL, "--agent", "red_0", "blue_0"), "play agents of one team, not red_0, blue_0"),
        ((DUEL, "--opponent", "wlaker"), "did you mean 'walker'"),
        ((DUEL, "--agent", "red_0", "red_1", "--teammates", "walker"), "is all of red: leave --teammates away"),
        (("CartPole", "--opponent", "random"), "CartPole has no other team: leave --opponent away"),
        (("CartPole", "--opponent", ""), "leave --opponent away"),
        (("CartPole", "--joystick"), "has choices alone, which no axis of a joystick makes: leave --joystick away"),
        (
            ("TeamPush", "--set", "actions=continuous", "--joystick", "fly=1"),
            "--joystick fly=1: say which axis, 1 to 32, moves which number, as ",
        ),
        (
            ("TeamPush", "--set", "actions=continuous", "--joystick", "force[0]=0"),
            "--joystick force[0]=0: say which axis",
        ),
        (("CartPole", "--headless", "left,up"), "the key 'up' does nothing: there are left, right, ., space"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(words: tuple[str, ...], complaint: str, run, refused):
    assert complaint in refused(run("play", *words, *(() if "--headless" in words else ("--headless", "."))))


class Typist:
    """Stands for pygame's event queue: one list of events a picture."""

    def __init__(self, pygame: Any, *pictures: list[tuple[str, bool]]) -> None:
        self._pictures = iter(pictures)
        self._pygame = pygame

    def get(self) -> list[Any]:
        pygame = self._pygame
        typed = next(self._pictures, None)
        if typed is None:
            return [pygame.event.Event(pygame.QUIT)]
        kinds = {True: pygame.KEYDOWN, False: pygame.KEYUP}
        return [pygame.event.Event(kinds[down], key=pygame.key.key_code(name)) for name, down in typed]


def type_into(session: Session, monkeypatch: pytest.MonkeyPatch, *pictures: list[tuple[str, bool]]) -> list[int]:
    """What the first agent did in each decision."""
    pygame = pytest.importorskip("pygame")
    done: list[int] = []
    step = session.sim.step
    monkeypatch.setattr(session.sim, "step", lambda: (step(), done.append(int(session.sim.actions[0, 0])))[0])
    pygame.display.init()  # key codes need it
    monkeypatch.setattr(pygame.event, "get", Typist(pygame, *pictures).get)
    Window(session).open()
    return done


def test_a_window_reads_keys_that_are_held_tapped_and_released(monkeypatch: pytest.MonkeyPatch):
    assert os.environ["SDL_VIDEODRIVER"] == "dummy"
    session = started(DUEL, wait=False, fps=1000, opponent="walker", teammates="walker")
    session.sim.states["place"][0, 0] = 2
    typed = ([("3", True)], [], [("3", False), ("2", True), ("2", False)], [])
    assert type_into(session, monkeypatch, *typed) == [2, 2, 1, 0]


def test_a_window_that_waits_moves_once_a_key(monkeypatch: pytest.MonkeyPatch):
    session = started(DUEL, wait=True, opponent="walker", teammates="walker")
    assert type_into(session, monkeypatch, [], [("1", True)], [], [("1", False)], [("1", True)]) == [0, 0]
    assert session.sim.states["steps"][0] == 2


def test_a_window_obeys_the_programs_keys(monkeypatch: pytest.MonkeyPatch):
    session = started(DUEL, wait=False, fps=1000)
    assert len(type_into(session, monkeypatch, [("1", True)], [("1", False), ("space", True)], [("n", True)])) == 1
    assert session.seed == 1
    assert type_into(session, monkeypatch, [("1", True)], [("escape", True)], []) == [0]


def test_a_window_begins_a_match_with_the_players_first_key(monkeypatch: pytest.MonkeyPatch):
    session = started(DUEL, wait=False, fps=1000, opponent="walker", teammates="walker")
    idle: list[tuple[str, bool]] = []
    assert type_into(session, monkeypatch, idle, [("x", True)], idle) == []
    assert not session.ready
    assert session.awaits_a_key
    assert len(type_into(session, monkeypatch, idle, [("1", True)], [("1", False)], idle)) == 3
    assert len(type_into(session, monkeypatch, [("space", True)], idle, [("space", True)], idle)) == 2, (
        "space starts, pauses"
    )
    session.command("space")
    assert len(type_into(session, monkeypatch, [("1", True)], [("1", False), ("n", True)], idle, idle)) == 1, (
        "the next match waits too"
    )


def test_without_a_display_the_error_names_the_way_out(monkeypatch: pytest.MonkeyPatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.delenv("SDL_VIDEODRIVER")
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    with pytest.raises(RuntimeError, match=r"there is no display .* --headless 1,2,3"):
        Window(started()).open()


# -- joysticks ---------------------------------------------------------------------------------------------------------


def steered(positions: list[float], *words: str) -> np.ndarray:
    """Action of the first agent after a decision with a joystick."""
    session = started("palaestra/TeamPush-v0", actions="continuous", joystick=words)
    assert session.decide(["space"] if session.wait else [REST_KEY], positions)
    return session.sim.actions[0, 0].copy()


def test_axes_move_the_numbers_of_an_action_in_their_order_or_as_they_are_told():
    np.testing.assert_allclose(steered([0.5, -1.0]), [0.5, -1.0])
    np.testing.assert_allclose(steered([0.5, -1.0], "force[0]=-2"), [1.0, 0.0])


def test_an_axis_about_its_middle_rests_and_one_that_is_missing_does_nothing():
    np.testing.assert_allclose(steered([0.04]), [0.0, 0.0])
    np.testing.assert_allclose(steered([]), [0.0, 0.0])


@pytest.mark.check
def test_a_window_reads_the_first_joystick(monkeypatch: pytest.MonkeyPatch):
    pygame = pytest.importorskip("pygame")
    stick = SimpleNamespace(init=lambda: None, get_numaxes=lambda: 2, get_axis=[-0.25, 1.0].__getitem__)
    monkeypatch.setattr(pygame.joystick, "get_count", lambda: 1)
    monkeypatch.setattr(pygame.joystick, "Joystick", lambda number: stick)
    session = started("palaestra/TeamPush-v0", actions="continuous", wait=False, fps=1000, joystick=())
    done: list[np.ndarray] = []
    step = session.sim.step
    monkeypatch.setattr(session.sim, "step", lambda: (step(), done.append(session.sim.actions[0, 0].copy()))[0])
    pygame.display.init()
    monkeypatch.setattr(pygame.event, "get", Typist(pygame, [("space", True)], []).get)
    Window(session).open()
    np.testing.assert_allclose(done, [[-0.25, 1.0]] * 2)


def test_without_a_joystick_the_error_says_so(monkeypatch: pytest.MonkeyPatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setattr(pygame.joystick, "get_count", lambda: 0)
    with pytest.raises(RuntimeError, match="there is no joystick: connect one first, or leave --joystick away"):
        Window(started("palaestra/TeamPush-v0", actions="continuous", joystick=())).open()
