"""Red and blue pull a rope: pulling costs breath, resting brings it back. Who drags the knot one metre wins."""

import palaestra
from palaestra.game import Choice, Field, Game, Role, uniform

KNOT = Field("knot_m", (), -1.5, 1.5, "m", "of the knot, positive towards me")
BREATH, OTHER = (Field(name, (), 0.0, 1.0, "1", "breath left") for name in ("breath", "opponent_breath"))
EFFORT = Choice("effort", 3, ("rest", "pull", "heave"))
PULLER = Role("puller", agents=("red_0", "blue_0"), observation=(KNOT, BREATH, OTHER), action=(EFFORT,))


def reset(s, world):  # a match begins; s is its state
    s.knot_m = uniform(s, -0.1, 0.1)  # positive towards red
    s.breath[:] = 1.0


def step(s, world, actions, rewards, scratch):  # all agents have decided; True ends the match
    for k in range(2):
        spent = min(0.5 * actions.puller[k].effort, s.breath[k])
        s.breath[k] = min(s.breath[k] - spent + 0.4, 1.0)
        s.knot_m += 0.3 * spent * (1.2 - spent) * (1.0 if k == 0 else -1.0)
    if abs(s.knot_m) < 1.0:
        return False
    s.info.end_reason = 2  # the first of end_reasons
    s.info.winner = 0 if s.knot_m > 0.0 else 1
    rewards[0], rewards[1] = (1.0, -1.0) if s.knot_m > 0.0 else (-1.0, 1.0)
    return True


def observe(s, world, observations, scratch):  # each sees the rope from its own end
    for k in range(2):
        seen = observations.puller[k]
        seen.knot_m = s.knot_m if k == 0 else -s.knot_m
        seen.breath, seen.opponent_breath = s.breath[k], s.breath[1 - k]


def script(s, world, slot, which, actions, scratch):  # a built-in opponent, beside random play
    actions.puller[slot].effort = 1 if s.breath[slot] >= 0.5 else 0


def game() -> Game:
    state = (("knot_m", "f8"), ("breath", "f8", (2,)))
    return Game(
        "Rope", (PULLER,), state, reset, observe, step, horizon=200, end_reasons=("dragged_over",), zero_sum=True,
        script=script, scripts=("steady",), default_opponent="steady",
    )  # fmt: skip


palaestra.register("examples/Rope-v0", game, about="two teams pull a rope")


if __name__ == "__main__":
    from typing import Any

    import gymnasium
    import numpy as np

    from palaestra.testing import check

    env: Any = gymnasium.make("examples/Rope-v0", opponent="random")
    observation, info = env.reset(seed=0)
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step(1 if observation[1] >= 0.5 else 0)
        over = terminated or truncated
    winner, reason = env.unwrapped.team_names[info["winner"]], env.unwrapped.end_reasons[info["end_reason"]]
    print(f"one match: the winner is {winner} ({reason})")

    batch = palaestra.make_batch("examples/Rope-v0", num_envs=4096, opponents={"red": "steady", "blue": "random"})
    batch.reset(seed=0)
    won = np.zeros(2, int)
    for _ in range(300):
        batch.step()
        won += [int((batch.rewards[:, 0] > 0).sum()), int((batch.rewards[:, 1] > 0).sum())]
    print(f"4096 matches at a time: steady won {won[0]}, random {won[1]}")

    print(check("examples/Rope-v0"))
