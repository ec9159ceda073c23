"""Plays any agent of any game with the keyboard, in a window, against scripts.

Keys come from the action table and are listed below the picture; with --joystick axes move real numbers. Games of few
pictures a second wait for your move (--wait), the others run on (--no-wait). Where the game knows what a click on the
picture means (`Game.click`), the mouse plays too; of several agents it moves the one in brackets. Tab chooses the next
one; in some games a click on another agent chooses that one. In games whose agents read and write words you type, in
the terminal (Ctrl-D ends).
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import pkgutil
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import make_batch
from palaestra.cli.common import add_id, add_keywords, keywords_of, positive_number, seed_number
from palaestra.cli.keyboard import RESERVED, REST_KEY, SELECT_KEY, Hands, Key, bind, bind_axes, key_table, meant
from palaestra.cli.talk import talk
from palaestra.console import find_id, near, print_table
from palaestra.core.compile.linker import record_view
from palaestra.core.contract.pictures import fit
from palaestra.core.faces.agent_io import NO_CODEC, AgentIO, speaks_text
from palaestra.core.run.opponents import OpponentSpec
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra.players.named_players import named_player
from palaestra.registry import make_game

ABOUT = "play a game yourself, with the keyboard"
EXAMPLE = "palaestra play TeamPong --opponent tracker:0.5"
WAITING_FPS = 5.0
"""Games of at most so many decisions a second wait for the player by default."""
WINDOW_FPS = 30.0
"""Rate at which a waiting window reads the keyboard."""
UNSEEN = ("dummy", "offscreen")
"""Drivers that SDL falls back on where there is no screen."""
CLICK = re.compile(r"click:(-?\d+)[,x](-?\d+)")
"""A click in a script of keys: pixels from the left and from the top of the picture."""
ROW = 18
"""Pixels from line to line of the legend."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser)
    parser.add_argument("--agent", "--control", dest="agents", metavar="AGENT", nargs="+", help="agents that you play")
    parser.add_argument("--opponent", metavar="PLAYER", help="player of the other team (default: the game's choice)")
    parser.add_argument("--teammates", metavar="SCRIPT", help="player of the rest of your team (default: likewise)")
    parser.add_argument(
        "--seed", type=seed_number, default=0, help="seed of the first match; the next one's is one more"
    )
    parser.add_argument(
        "--fps", type=positive_number, help="decisions a second (default: as fast as the simulated time)"
    )
    parser.add_argument("--wait", action=argparse.BooleanOptionalAction, help="the match waits for your action")
    parser.add_argument("--record", metavar="FILE", type=Path, help="save a replay")
    parser.add_argument("--keys", action="store_true", help="print the keys and leave")
    parser.add_argument(
        "--joystick",
        metavar="FIELD=AXIS",
        nargs="*",
        help="axes of a joystick move your agent's numbers: aileron=1 elevator=2 throttle=-3 (default: in order)",
    )
    parser.add_argument(
        "--headless",
        metavar="KEYS",
        help="no window: keys of each decision, as left,up+d,.,click:120,80,n (names as --keys prints)",
    )
    add_keywords(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: No such agent, no picture, or a key that does nothing.
        RuntimeError: No display.
    """
    if speaks_text(make_game(find_id(args.id), **keywords_of(args))[0]):
        return _run_in_words(args)
    session = Session(
        find_id(args.id),
        args.agents,
        opponent=named_player(args.opponent),
        teammates=args.teammates,
        seed=args.seed,
        fps=args.fps,
        wait=args.wait,
        joystick=args.joystick,
        **keywords_of(args),
    )
    if args.keys:
        print_table(key_table(session.keyboard) + session.mouse_table(), ["agent", "key", "does"])
        return 0
    recorder = _recorder(session.sim) if args.record else None
    try:
        session.start()
        if args.headless is not None:
            follow(session, args.headless)
        else:
            Window(session).open()
    finally:
        if recorder is not None:
            recorder.stop()
        session.sim.close()
    for line in session.results:
        print(line)
    _save(recorder, args)
    return 0


def _run_in_words(args: argparse.Namespace) -> int:
    """Plays a match by lines of words.

    Raises:
        ValueError: No such agent or player, or an option of windows and keys.
    """
    for name in ("fps", "wait", "keys", "headless", "joystick"):
        if getattr(args, name) not in (None, False):
            raise ValueError(f"--{name} is for keys: here you type words")
    sim: Simulation = make_batch(find_id(args.id), 1, **{**keywords_of(args), "autoreset_mode": "off"})
    try:
        agents = _agents(sim.game, args.agents)
        team = agents[0].rpartition("_")[0]
        _assign_players(sim, agents, team, named_player(args.opponent), args.teammates)
        recorder = _recorder(sim) if args.record else None
        for text in talk(sim, agents, args.seed):
            print(text)
        _save(recorder, args)
    finally:
        sim.close()
    return 0


def _save(recorder: Any, args: argparse.Namespace) -> None:
    """Writes the replay, if one was recorded, and says how it is drawn."""
    if recorder is not None:
        recorder.replay().save(args.record)
        module = args.id.rpartition(":")[0]
        first = f"--import {module} " if module else ""
        print(f"{args.record}: palaestra replay {first}{args.record} --gif match.gif")


def _recorder(sim: Simulation) -> Any:
    from palaestra.replay import Recorder

    return Recorder(sim)


class Session:
    """Matches that a person plays: keys and pictures, without a window.

    Attributes:
        sim: One lane.
        agents: Agents that the keys move.
        keyboard: Which keys those are.
        selected: Agent that a click moves.
        fps: Decisions a second.
        wait: Whether the match waits for the player's action.
        over: Whether the match has ended.
        on_key: Whether a match begins with the player's first key or click; a window asks for it.
        ready: Whether it has begun, or begins at once.
        axes: What a joystick moves.
        results: How the matches ended, as text.
    """

    def __init__(
        self,
        id: str,
        agents: Sequence[str] | None = None,
        *,
        opponent: OpponentSpec = None,
        teammates: str | None = None,
        seed: int = 0,
        fps: float | None = None,
        wait: bool | None = None,
        joystick: Sequence[str] | None = None,
        **keywords: Any,
    ) -> None:
        """Assigns all players; see `add_arguments`.

        Raises:
            ValueError: No such agent or player, agents of two teams, no picture, or a number out of range.
        """
        self.sim: Simulation = make_batch(id, 1, **{**keywords, "autoreset_mode": "off"})
        game = self.sim.game
        if game.render is None:
            raise ValueError(f"{id} has no picture: there is nothing to look at while you play")
        self.agents = _agents(game, agents)
        self._team = game.agents[game.agents.index(self.agents[0])].rpartition("_")[0]
        self.keyboard = bind(game, self.agents)
        self.fps = game.render_fps if fps is None else fps
        if not 0.0 < self.fps < math.inf:
            raise ValueError(f"fps must be a positive number, got {fps}")
        self.wait = game.render_fps <= WAITING_FPS if wait is None else wait
        self.seed, self.over, self.paused = seed, False, False
        self.on_key, self.ready = False, True
        self.results: list[str] = []
        self.selected = self.agents[0]
        self._hands = Hands(game, self.agents, self.keyboard)
        self.axes = () if joystick is None else bind_axes(game, self.agents[0], joystick)
        slots = {agent: game.agents.index(agent) for agent in self.agents}
        self._agent_ios = {a: AgentIO(self.sim, (slot,), "dict", codec=NO_CODEC) for a, slot in slots.items()}
        self._click: Any = pkgutil.resolve_name(game.click) if game.click is not None else None
        self._clicked: dict[str, Any] = {}
        self._chosen: list[str] = []
        self._score = 0.0
        _assign_players(self.sim, self.agents, self._team, opponent, teammates)

    def start(self) -> None:
        """Starts the match of the present seed."""
        self.sim.reset(seed=self.seed)
        self._hands.rest()
        self._chosen, self._score, self.over, self.paused = [], 0.0, False, False
        self._clicked, self.ready = {}, self.wait or not self.on_key

    def command(self, key: str) -> bool:
        """Handles a key of the program. Returns whether the player continues."""
        if key == "escape":
            return False
        if key == "space" and not self.ready:
            self.ready = True
        elif key == "space":
            self.paused = not self.paused
        elif key == SELECT_KEY:
            self.selected = self.agents[(self.agents.index(self.selected) + 1) % len(self.agents)]
        elif key in ("n", "return", "r"):
            self.seed += key != "r"
            self.start()
        return True

    def click(self, x: int, y: int) -> bool:
        """Takes a click on a pixel of the picture: the next action of the selected agent, or the agent selected next.

        Returns:
            Whether it means anything.
        """
        height, width, _ = self.sim.render(0).shape
        if self._click is None or self.over or self.paused or not (0 <= x < width and 0 <= y < height):
            return False
        slot = self._agent_ios[self.selected].slots[0]
        if self.sim.render_size is not None:
            own_height, own_width, _ = np.asarray(self.sim.draw(0)).shape
            zoom, (left, top), _ = fit((own_width, own_height), self.sim.render_size)
            x, y = int((x - left) / zoom), int((y - top) / zoom)
        action = self._click(self.sim.game, self.sim.game.world, record_view(self.sim.states)[0], slot, x, y)
        if action is None or (isinstance(action, str) and action not in self.agents):
            return False
        if isinstance(action, str):
            self.selected = action
        else:
            self._clicked[self.selected] = action
        return True

    def decide(self, pressed: Sequence[str], positions: Sequence[float] = ()) -> bool:
        """Plays one decision if it is time for one. Returns whether it did.

        Args:
            pressed: Keys that are held or went down since the last call, in the order in which they did.
            positions: Of the axes of a joystick, -1 to 1.
        """
        if self.over or self.paused:
            return False
        self.ready = self.ready or bool(self._clicked) or any(self._is_bound(key) for key in pressed)
        if not self.ready:
            return False
        if self.wait:
            self._chosen += [key for key in pressed if self._is_bound(key)]
            if not self._all_have_chosen():
                return False
            pressed, self._chosen = self._chosen, []
        actions = self._hands.move(pressed, 1.0 / self.fps, self._lists())
        self._hands.steer(self.agents[0], self.axes, positions)
        self._write(actions)
        for agent, action in self._clicked.items():
            self._agent_ios[agent].write_one(action)
        self._clicked = {}
        self.sim.step()
        self._score += float(self.sim.team_rewards(self._team)[0])
        self.over = bool(self.sim.terminated[0] or self.sim.truncated[0])
        if self.over:
            text = f"seed {self.seed}: {self.verdict()} after {int(self.sim.states['steps'][0])} decisions"
            self.results.append(f"{text}, score {self._score:+g}")
        return True

    def _is_bound(self, key: str) -> bool:
        """Whether a key moves an agent, or passes."""
        return key == REST_KEY or self.keyboard.named(key) is not None

    def verdict(self) -> str:
        """The winner and the reason."""
        info = self.sim.info
        winner, reason = int(info["winner"][0]), self.sim.game.end_reason(int(info["end_reason"][0]))
        teams = list(self.sim.game.teams)
        if winner >= 0:
            return f"{teams[winner]} won ({reason})"
        return f"no winner ({reason})" if len(teams) > 1 else reason

    def frame(self) -> np.ndarray:
        """Picture with the legend below it, uint8 ``[H, W, 3]``."""
        picture = self.sim.render(0)
        return np.concatenate([picture, self._legend(picture.shape[1])])

    @property
    def awaits_a_key(self) -> bool:
        """Whether nothing moves before a key does."""
        return self.over or self.paused or not self.ready or (self.wait and not self._all_have_chosen())

    def _all_have_chosen(self) -> bool:
        asked = [a for a in self.agents if self.sim.acting[0, self.sim.game.agents.index(a)]]
        keys = (self.keyboard.named(name) for name in self._chosen)
        chosen = {key.agent for key in keys if key is not None} | {*self._clicked}
        return REST_KEY in self._chosen or chosen.issuperset(asked)

    @property
    def commands(self) -> dict[str, str]:
        """Keys of the program and what they do."""
        if self._click is None or len(self.agents) == 1:
            return RESERVED
        return {**RESERVED, SELECT_KEY: "next agent"}

    def mouse_table(self) -> list[list[str]]:
        """What `key_table` does not have: rows of the mouse."""
        if self._click is None:
            return []
        rows = [["", "click:X,Y", "an action, by a click on that pixel of the picture"]]
        return rows + [["", SELECT_KEY, "next agent"]] * (SELECT_KEY in self.commands)

    def _lists(self) -> dict[str, dict[str, np.ndarray]]:
        """The legal alternatives of each agent's choices that have lists."""
        return {agent: agent_io.masks_of().get("candidates", {}) for agent, agent_io in self._agent_ios.items()}

    def _write(self, values: dict[str, dict[str, Any]]) -> None:
        game, rows = self.sim.game, self.sim.buffers.action_records
        for agent, fields in values.items():
            role, index = game.role_of(game.agents.index(agent))
            for name, value in fields.items():
                rows[role.name][name][0, index] = value

    def _legend(self, width: int) -> np.ndarray:
        from palaestra.drawing.canvas import Canvas
        from palaestra.drawing.colors import MUTED, SIGNAL, TEXT
        from palaestra.drawing.widgets import length_of

        entries = [self.entry(key) for key in self.keyboard.keys]
        entries += [(f"{REST_KEY} nothing", False)] if self.wait else []
        lines: list[list[tuple[float, str, bool]]] = [[]]
        x = 10.0
        for text, on in entries:
            long = length_of(text, 12) + 18.0
            if x + long > width and lines[-1]:
                lines.append([])
                x = 10.0
            lines[-1].append((x, text, on))
            x += long
        panel = Canvas(width, ROW * (len(lines) + 2) + 12)
        state = "paused, space continues" if self.paused else "your move" if self.wait else ""
        state = state if self.ready else "a key of an agent, or space, starts the match"
        state = f"{self.verdict()}: n plays the next match, r this one again" if self.over else state
        mark = SELECT_KEY in self.commands
        names = ", ".join(f"[{a}]" if mark and a == self.selected else a for a in self.agents)
        head = f"{names}   seed {self.seed}   score {self._score:+g}   {state}"
        panel.text((10.0, ROW), head, SIGNAL if self.over or self.paused or not self.ready else TEXT)
        for number, line in enumerate(lines, 2):
            for left, text, on in line:
                panel.text((left, ROW * number), text, SIGNAL if on else MUTED)
        commands = "   ".join(f"{name} {meaning}" for name, meaning in self.commands.items() if name != "return")
        commands += "   or click" if self._click is not None else ""
        panel.text((10.0, ROW * (len(lines) + 2)), commands, MUTED)
        return np.asarray(panel.finish())

    def entry(self, key: Key) -> tuple[str, bool]:
        """Text of the legend for a key, and whether the agent does that now."""
        value = np.asarray(self._hands.values[key.agent][key.field]).reshape(-1)[key.index]
        stands_for = meant(key, self._lists()[key.agent].get(key.field))
        meaning = key.meaning if not key.listed else f"{key.field} {stands_for}" if stands_for >= 0 else "-"
        return f"{key.name} {meaning}", bool((np.sign(value) if value.dtype.kind == "f" else value) == stands_for)


def _agents(game: Game, agents: Sequence[str] | None) -> tuple[str, ...]:
    """Agents that the player moves: by default the first agent of the first team."""
    if not agents:
        return (game.agents[next(iter(game.teams.values()))[0]],)
    for agent in agents:
        if agent not in game.agents:
            there_are = ", ".join(game.agents)
            raise ValueError(f"{game.name} has no agent {agent!r}{near(agent, game.agents)} (it has {there_are})")
    if len({agent.rpartition("_")[0] for agent in agents}) > 1:
        raise ValueError(f"play agents of one team, not {', '.join(agents)}")
    return tuple(dict.fromkeys(agents))


def _assign_players(
    sim: Simulation, agents: Sequence[str], team: str, opponent: OpponentSpec, teammates: str | None
) -> None:
    """Gives all other agents to scripts; in a game of one team without scripts the others do nothing."""
    game = sim.game
    others = [name for name in game.teams if name != team]
    if opponent is not None and not others:
        raise ValueError(f"{game.name} has no other team: leave --opponent away")
    for name in others:
        sim.set_opponent(name, game.default_opponent if opponent is None else opponent)
    rest = [game.agents[slot] for slot in game.teams[team] if game.agents[slot] not in agents]
    if teammates is not None and not rest:
        raise ValueError(f"{', '.join(agents)} is all of {team}: leave --teammates away")
    if teammates is None and len(game.teams) == 1 and game.script is None:
        return
    for agent in rest:
        sim.set_opponent(agent, game.default_opponent if teammates is None else teammates)


def follow(session: Session, script: str) -> None:
    """Plays a script of keys, decision by decision; pictures are drawn where Pillow is installed.

    Raises:
        ValueError: A key or a click that does nothing; names the keys that do.
    """
    commands, draws = session.commands, importlib.util.find_spec("PIL") is not None
    known = [key.name for key in session.keyboard.keys] + [REST_KEY, *commands]
    for token in CLICK.sub(r"click:\1x\2", script).split(","):
        names = [name for name in token.strip().split("+") if name]
        pressed = [name for name in names if name not in commands and not CLICK.fullmatch(name)]
        for name in pressed:
            if name not in known:
                raise ValueError(f"the key {name!r} does nothing: there are {', '.join(known)}")
        if not all([_obey(session, name) for name in names if name not in pressed]):
            break
        if any(name not in commands for name in names) or not names:
            session.decide(pressed)
        if draws:
            session.frame()
    if not session.over and (steps := int(session.sim.states["steps"][0])):
        session.results.append(f"seed {session.seed}: not over after {steps} decisions, score {session._score:+g}")


def _obey(session: Session, token: str) -> bool:
    """Carries out a key of the program or a click. Returns whether the player continues."""
    found = CLICK.fullmatch(token)
    if found is None:
        return session.command(token)
    x, y = int(found[1]), int(found[2])
    if not session.click(x, y):
        raise ValueError(f"a click on {x}, {y} does nothing for {session.selected}")
    return True


class Window:
    """Shows a session and reads the keyboard and the mouse, with pygame."""

    def __init__(self, session: Session) -> None:
        """Opens nothing yet. A match that does not wait for every action waits for the player's first one."""
        self._session = session
        session.on_key, session.ready = True, session.wait

    def open(self) -> None:
        """Plays until the player quits.

        Raises:
            ImportError: pygame is missing; names the command that installs it.
            RuntimeError: There is no display.
        """
        try:
            import pygame
        except ImportError as error:
            raise ImportError('a window needs pygame: pip install "palaestra[render]"') from error
        session = self._session
        picture = session.frame()
        try:
            pygame.display.init()
            if pygame.display.get_driver() in UNSEEN and "SDL_VIDEODRIVER" not in os.environ:
                raise pygame.error("SDL would draw to no visible screen")
            screen = pygame.display.set_mode((picture.shape[1], picture.shape[0]))
        except pygame.error as error:
            raise RuntimeError(
                f"there is no display ({error}): play on a machine with a screen, or give the keys of each decision "
                f"with --headless {','.join(key.name for key in session.keyboard.keys[:3])}"
            ) from error
        pygame.display.set_caption(f"palaestra {session.sim.game.name}")
        stick = self._joystick(pygame)
        clock = pygame.time.Clock()
        held: list[str] = []
        try:
            while True:
                fresh, going = self._listen(pygame, held)
                if not going:
                    break
                positions = [] if stick is None else [stick.get_axis(k) for k in range(stick.get_numaxes())]
                session.decide(fresh if session.wait else [*held, *(k for k in fresh if k not in held)], positions)
                picture = session.frame()
                screen.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
                pygame.display.flip()
                clock.tick(WINDOW_FPS if session.awaits_a_key else session.fps)
        finally:
            pygame.display.quit()

    def _joystick(self, pygame: Any) -> Any:
        """The first joystick, where one is asked for.

        Raises:
            RuntimeError: There is none.
        """
        if not self._session.axes:
            return None
        pygame.joystick.init()
        if pygame.joystick.get_count() == 0:
            raise RuntimeError("there is no joystick: connect one first, or leave --joystick away and play by keys")
        stick = pygame.joystick.Joystick(0)
        stick.init()
        return stick

    def _listen(self, pygame: Any, held: list[str]) -> tuple[list[str], bool]:
        """Keys that went down since the last look, and whether the player continues; keeps ``held``."""
        fresh: list[str] = []
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return fresh, False
            if event.type == pygame.KEYUP and (name := pygame.key.name(event.key)) in held:
                held.remove(name)
            if event.type == pygame.MOUSEBUTTONDOWN and event.button == pygame.BUTTON_LEFT:
                self._session.click(*event.pos)
            if event.type == pygame.KEYDOWN:
                name = pygame.key.name(event.key)
                fresh.append(name)
                if name in self._session.commands:
                    if not self._session.command(name):
                        return fresh, False
                elif name not in held:
                    held.append(name)
        return fresh, True
