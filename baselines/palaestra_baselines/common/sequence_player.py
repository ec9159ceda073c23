"""A player by a sequence model, whose memory holds its last decisions and a prompt of its own earlier matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from palaestra.game import Game
from palaestra.players.choosing import Chance
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.decision_transformers import HISTORY, Agent, Decisions
from palaestra_baselines.common.number_networks import CHUNK

Parts = dict[str, torch.Tensor]


class SequencePlayer:
    """Plays a team of one agent by an `Agent`: an `palaestra.core.run.opponents.Opponent`.

    It acts by the last K decisions of the running match, and by a prompt: P decisions of the earlier matches of its
    lane, those with the largest error of the world model (or any), as long as the lane is not seeded anew. The last
    decision of a match is in no prompt, since its player does not see what followed.

    Attributes:
        memory_size, kept_size: All numbers outlive a match.
        reward_at: 0.
        policy_outputs: Empty.
    """

    reward_at = 0

    def __init__(
        self, agent: Agent, game: Game, team: str, prompt: torch.Tensor | None = None, told: torch.Tensor | None = None
    ) -> None:
        """Keeps the networks.

        Args:
            agent: The networks.
            game: The rules.
            team: Name of the team.
            prompt: Rows ``[G, P, R]`` of prompts that it is given, one of them in each lane, see `DecisionTransformer`.
            told: The true task ``[context]``, for a player without world model that reads one.

        Raises:
            ValueError: The team has several agents, or it was trained to be told the task, and is not.
        """
        design, roster = agent.design, Roster(game, [team], numbers=True)
        if roster.agents != 1 or not roster.gives_numbers:
            raise ValueError(f"{game.name}: sequence models play teams of one agent that gives real numbers")
        if design.context and not design.decoder and told is None:
            raise ValueError("it was trained to be told the task of each match, and nobody tells it")
        self.agent, self.given, self.told = agent, prompt, told
        (self.role,) = roster.joint
        self.joint, self.team = roster.joint[self.role], list(game.teams).index(team)
        states, actions = agent.sizes
        width = states + 1 + actions + 1 + design.context
        self.shapes = {
            **dict.fromkeys(("reward", "count", "decisions", "to_go", "now_score", "before_score"), (1,)),
            **{"rows": (design.steps, width), "errors": (design.prompt,)},
            **{"now": (design.prompt, width), "before": (design.prompt, width)},
        }
        self.memory_size = self.kept_size = sum(int(np.prod(shape)) for shape in self.shapes.values())
        self.policy_outputs = dict[str, np.ndarray]()

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        seen = (observations[self.role] if isinstance(observations, dict) else observations)[:, 0]
        draws = Chance(seeds, memory[:, 2], 1, self.team).uniforms(1)[:, 0]
        picks = Chance(seeds, 0 * memory[:, 2], 1, self.team).uniforms(1)[:, 0]
        parts, count = [], len(memory)
        for start in range(0, count, CHUNK):
            rows = np.minimum(np.arange(start, start + CHUNK), count - 1)
            given = (torch.from_numpy(np.ascontiguousarray(x[rows])) for x in (seen, first, draws, picks, memory))
            chosen, after = self.decide(*given)
            parts.append(chosen)
            stop = min(start + CHUNK, count)
            memory[start:stop] = after[: stop - start]
        return self.joint.split(torch.cat(parts)[:count].numpy())[:, None]

    @torch.no_grad()
    def decide(
        self, states: torch.Tensor, first: torch.Tensor, draws: torch.Tensor, picks: torch.Tensor, memory: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Actions ``[B, m]`` in [-1, 1], and the memory ``[B, memory_size]`` after them.

        Args:
            states: Not scaled, ``[B, n]``.
            first: bool ``[B]``: the match begins.
            draws: ``[B]``, uniform in (0, 1).
            picks: Likewise, the same in all decisions of a lane.
            memory: Before.
        """
        part, design, lanes = self.split(memory.float()), self.agent.design, torch.arange(len(memory))
        states = self.agent.scaling("state", states.float())
        self.complete(part, states, first, draws.float())
        self.begin(part, first)
        count, rows = part["count"][:, 0].long(), part["rows"]
        is_full = count == design.steps
        rows = torch.where(is_full[:, None, None], rows.roll(-1, 1), rows)
        count = count - is_full.long()
        now = torch.zeros_like(rows[:, 0])
        to_go = self.agent.scaling("to_go", part["to_go"])
        now[:, : states.shape[1] + 1] = torch.cat([states, to_go], 1)
        now[:, now.shape[1] - design.context :] = self.context(rows, count)
        rows[lanes, count] = now
        prompt, is_there = part["before"], part["before_score"][:, 0] > 0.0
        if design.segment == "given":
            is_there = torch.full_like(is_there, self.given is not None)
            if self.given is not None:
                prompt = self.given[(picks * len(self.given)).long()]
        chosen = self.agent.transformer(rows, prompt, is_there)[lanes, count]
        rows[lanes, count, states.shape[1] + 1 : states.shape[1] + 1 + chosen.shape[1]] = chosen
        part |= {"rows": rows, "count": count[:, None] + 1, "decisions": part["decisions"] + 1}
        return chosen, torch.cat([part[name].flatten(1) for name in self.shapes], 1).double()

    def split(self, memory: torch.Tensor) -> Parts:
        """Parts of a memory by name."""
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        parts = zip(self.shapes, memory.split(sizes, 1), strict=True)
        return {name: part.unflatten(1, self.shapes[name]).clone() for name, part in parts}

    def read(self, rows: torch.Tensor) -> Decisions:
        """The decisions ``[...]`` of rows ``[..., R]``, without changes."""
        state, _, action, reward, _ = rows.split(self.agent.transformer.sizes, -1)
        return Decisions(state, action, reward[..., 0], torch.zeros_like(state))

    def context(self, rows: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        """Contexts ``[B, context]`` of a decision that comes after ``count`` rows."""
        if self.told is not None:
            return self.told.expand(len(count), -1)
        if not self.agent.design.decoder:
            return rows[:, 0, :0]
        steps = count[:, None] + torch.arange(-HISTORY, 0)
        before = rows[torch.arange(len(count))[:, None], steps.clamp(min=0)]
        return self.agent.world.encode(self.read(before), steps >= 0)

    def complete(self, part: Parts, states: torch.Tensor, first: torch.Tensor, draws: torch.Tensor) -> None:
        """Adds to the last decision of running matches what followed it, and chooses the prompt among the latest P."""
        agent, design = self.agent, self.agent.design
        lanes, count = torch.arange(len(first)), part["count"][:, 0].long()
        last, goes_on = (count - 1).clamp(min=0), ~first & (count > 0)
        rewards = agent.scaling("reward", part["reward"][:, 0])
        at = part["rows"].shape[-1] - design.context - 1
        part["rows"][lanes, last, at] = torch.where(goes_on, rewards, part["rows"][lanes, last, at])
        part["to_go"] -= part["reward"] * goes_on[:, None]
        if not design.prompt or design.segment == "given":
            return
        row = part["rows"][lanes, last]
        done = self.read(row)
        change = agent.scaling("change", (states - done.states) * agent.scaling.state[1])
        error = agent.world.errors(done._replace(changes=change), row[:, at + 1 :])
        part["errors"] = torch.where(
            goes_on[:, None], torch.cat([part["errors"][:, 1:], error[:, None]], 1), part["errors"]
        )
        score = part["errors"].sum(1) if design.segment == "largest" else draws
        better = goes_on & (count >= design.prompt) & (score > part["now_score"][:, 0])
        steps = (count[:, None] + torch.arange(-design.prompt, 0)).clamp(min=0)
        latest = part["rows"][lanes[:, None], steps]
        part["now_score"] = torch.where(better[:, None], score[:, None], part["now_score"])
        part["now"] = torch.where(better[:, None, None], latest, part["now"])

    def begin(self, part: Parts, first: torch.Tensor) -> None:
        """Where a match begins: a prompt of the match before replaces a worse one, the rest is forgotten."""
        better = first[:, None] & (part["now_score"] > part["before_score"])
        part["before_score"] = torch.where(better, part["now_score"], part["before_score"])
        part["before"] = torch.where(better[..., None], part["now"], part["before"])
        part["to_go"] = torch.where(first[:, None], self.agent.target.expand(len(first), 1), part["to_go"])
        for name in ("now_score", "count"):
            part[name] = part[name].masked_fill(first[:, None], 0.0)
