"""Codecs at the faces: observations and infos are those of the match as it stands."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from palaestra.core.faces.agent_io import AgentIO
from palaestra.testing.call_sequences import opponent_specs
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import unlike
from palaestra.testing.subject import Subject

LANES = 3
SHORT = 4
"""Longest horizon of matches that should end often."""
MODES = ("next_step", "same_step", "off")


@conformance(order=1106)
def codec_results_are_current(subject: Subject) -> None:
    """Each face gives what a new codec makes of the match as it stands: observations, infos, and those of ends.

    Of ParallelEnv, and of Env and VectorEnv in all autoreset modes where a team is one agent.
    """
    compared = 0
    for each in subject.with_codecs():
        new = each.game_anew()
        for name in each.game.codecs:
            codecs = new.codecs if name in new.codecs else each.game.codecs
            for watched in _faces(each, name):
                compared += watched.play(each, codecs[name])
    if not compared:
        raise Skipped("the game has no codecs")
    subject.note(f"{compared} observations and infos")


def _faces(subject: Subject, name: str) -> Iterator[Watched]:
    draw, game = subject.draw, subject.game
    options: dict[str, Any] = {"codec": name, "horizon": draw.integer("horizon", 2, SHORT)}
    yield Watched(subject, name, subject.parallel(**options, mask=None), {}, "off", options["horizon"])
    single = [team for team, slots in game.teams.items() if len(slots) == 1]
    if not single or "control" in subject.keywords:
        return
    team = draw.choice("control", single)
    others = {}
    if len(game.teams) > 1:
        opponent = draw.choice("opponent", opponent_specs(game))
        others = {other: opponent for other in game.teams if other != team}
        options |= {"control": team, "opponent": opponent}
    yield Watched(subject, name, subject.env(**options), others, "off", options["horizon"])
    for mode in MODES:
        vec = subject.vec(LANES, autoreset_mode=mode, **options)
        yield Watched(subject, name, vec, others, mode, options["horizon"])


class Watched:
    """A face with a codec, beside a batch without autoreset that plays the same matches.

    The face gets samples of its action spaces; in the rounds in which the codec does not understand them, what a random
    player does is written past the codec.
    """

    def __init__(self, subject: Subject, name: str, face: Any, others: dict[str, str], mode: str, horizon: int) -> None:
        self.face, self.mode, self._name, self.sim = face, mode, name, face.sim
        self.twin = subject.batch(self.sim.num_envs, autoreset_mode="off", opponents=others, horizon=horizon)
        self._player = Player(self.twin)
        if hasattr(face, "possible_agents"):
            self._owners = {agent: face.agent_ios[agent] for agent in face.possible_agents}
        else:
            self._owners = {subject.game.agents[face.agent_io.slots[0]]: face.agent_io}
        self._views = {agent: AgentIO(self.twin, io.slots, codec=name) for agent, io in self._owners.items()}
        step = self.sim.step

        def play_the_same(*given: Any, **options: Any) -> None:
            self.sim.buffers.action_words[...] = self._words
            step(*given, **options)

        self.sim.step = play_the_same

    def play(self, subject: Subject, codec: Any) -> int:
        """Plays some matches and compares; returns how much."""
        seed, compared = subject.draw.seed(), 0
        self._codec = codec
        self.twin.reset(seed=seed)
        result = self.face.reset(seed=seed)
        over = np.zeros(self.sim.num_envs, np.bool_)
        compared += self._compare(result[0], result[-1], over, "first reset")
        for number in subject.rounds(2 * SHORT, 2 * SHORT, 60):
            place = f"decision {number}"
            if over.any() and self.mode == "off":
                self.twin.reset(over)
                is_vec = hasattr(self.face, "num_envs")
                result = self.face.reset(options={"reset_mask": over}) if is_vec else self.face.reset()
                over = np.zeros_like(over)
                compared += self._compare(result[0], result[-1], over, f"reset before {place}")
                continue
            waiting = over if self.mode == "next_step" else np.zeros_like(over)
            if waiting.any():
                self.twin.reset(waiting)
            self._player.play(self.twin)
            self._words = self.twin.buffers.action_words.copy()
            self.twin.step(lanes=~waiting)
            given = self._given()
            result = self.face.step(given)
            over = (self.twin.terminated | self.twin.truncated) & ~waiting
            if self.mode == "same_step" and over.any():
                finals, final_info = result[-1].get("final_obs"), result[-1].get("final_info")
                require(finals is not None and final_info is not None, f"{self._place(place)}: an end without finals")
                compared += self._compare(finals, final_info, over, f"{place}, final", over)
                self.twin.reset(over)
            compared += self._compare(result[0], result[-1], over, place)
        return compared

    def _given(self) -> Any:
        """Actions that the codec understands, whatever they say: `play_the_same` writes others."""
        said = {agent: self._said(agent) for agent in self._owners}
        if hasattr(self.face, "possible_agents"):
            return {agent: said[agent] for agent in self.face.agents}
        own = next(iter(said.values()))
        return [own] * self.sim.num_envs if hasattr(self.face, "num_envs") else own

    def _said(self, agent: str) -> Any:
        io = self._owners[agent]
        codec: Any = io.codec
        for _ in range(50):
            sample = io.action_space.sample()
            try:
                codec.decode(io.agent_view(), sample)
            except ValueError:
                continue
            return sample
        encode, view = getattr(codec, "encode_action", None), io.agent_view()
        if encode is None:
            raise Skipped("neither are samples understood nor has the codec encode_action")
        block = io.blocks[0]
        idle = self.sim.action_table.idle
        self.sim.buffers.action_words[...] = idle
        own = block.actions[0].reshape(-1)
        if block.actions.dtype.names:
            return encode(view, {name: np.array(own[0][name]) for name in block.actions.dtype.names})
        return encode(view, own.copy() if len(own) > 1 else own[0])

    def _place(self, place: str) -> str:
        mode = f" ({self.mode})" if hasattr(self.face, "num_envs") else ""
        return f"{type(self.face).__name__}{mode}, codec {self._name!r}, {place}"

    def _compare(self, seen: Any, info: Any, over: np.ndarray, place: str, lanes: np.ndarray | None = None) -> int:
        """Compares what a face gave with what a new codec gives, of all lanes or of those that have just ended."""
        compared = 0
        is_final = lanes is not None
        for lane in range(self.sim.num_envs) if lanes is None else np.flatnonzero(lanes).tolist():
            for agent, io in self._views.items():
                shown, told = self._of(seen, info, agent, lane)
                if shown is None:
                    continue
                view = replace(io.agent_view(lane), **({"record": None} if is_final else {}))
                codec = copy.copy(self._codec)  # one that has not been asked before
                where = f"{self._place(place)}, lane {lane}, {agent}"
                found = unlike(codec.encode(view), shown)
                require(not found, f"{where}: observation {found} (of the match as it stands, and shown)")
                if io.tells:
                    expected = codec.info(view)
                    found = unlike(expected, {name: self._told(told, name, lane) for name in expected if name in told})
                    require(not found, f"{where}: info {found} (of the match as it stands, and shown)")
                compared += 1
        return compared

    def _of(self, seen: Any, info: Any, agent: str, lane: int) -> tuple[Any, dict[str, Any]]:
        """Observation and info of an agent; None where there are none."""
        if hasattr(self.face, "possible_agents"):
            return seen.get(agent), info.get(agent, {})
        if not hasattr(self.face, "num_envs"):
            return self._plain(seen), info
        return self._plain(seen[lane]), info

    def _told(self, info: dict[str, Any], name: str, lane: int) -> Any:
        return info[name][lane] if hasattr(self.face, "num_envs") else info[name]

    def _plain(self, seen: Any) -> Any:
        io = next(iter(self._owners.values()))
        return seen[io.mask_keys[0]] if io.mask_mode == "obs" else seen
