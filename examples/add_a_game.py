"""How to add a game: the whole of a two-team zero-sum game, registered, checked and played.

Red and blue pull a rope. Pulling costs breath, resting brings it back; the team that drags the knot one metre wins.
"""

import palaestra
from palaestra.core.fields import Choice, Field, Parameter
from palaestra.core.game import Game, Role
from palaestra.core.rng import script_uniform, uniform

DRAGGED_OVER = 2  # number of the first end reason (0 is running, 1 the horizon)

PULLER = Role(
    name="puller",
    agents=("red_0", "blue_0"),
    observation=(
        Field("knot_m", (), -1.5, 1.5, "m", "of the knot, positive towards me"),
        Field("breath", (), 0.0, 1.0, "1", "my breath"),
        Field("opponent_breath", (), 0.0, 1.0, "1", "the other's breath"),
    ),
    action=(Choice("effort", 3, ("rest", "pull", "heave")),),
)


def reset(s, world):
    """Puts the knot near the middle."""
    s.knot_m = uniform(s, -0.1, 0.1)  # positive towards red
    for k in range(2):
        s.breath[k] = 1.0


def step(s, world, actions, rewards, scratch):
    """Both pull; one metre decides."""
    for k in range(2):
        spent = min(0.5 * actions.puller[k].effort, s.breath[k])
        s.breath[k] = min(s.breath[k] - spent + s.parameters.recovery, 1.0)
        s.knot_m += 0.3 * spent * (1.2 - spent) * (1.0 if k == 0 else -1.0)  # heaving wears out more than it drags
    if abs(s.knot_m) < 1.0:
        return False
    s.info.end_reason = DRAGGED_OVER
    s.info.winner = 0 if s.knot_m > 0.0 else 1
    rewards[0] = 1.0 if s.knot_m > 0.0 else -1.0
    rewards[1] = -rewards[0]
    return True


def observe(s, world, observations, scratch):
    """Each sees the rope from its own end."""
    for k in range(2):
        seen = observations.puller[k]
        seen.knot_m = s.knot_m if k == 0 else -s.knot_m
        seen.breath, seen.opponent_breath = s.breath[k], s.breath[1 - k]


def script(s, world, slot, which, actions, scratch):
    """0 "steady": pulls whenever it has the breath; 1 "moody": does what it likes."""
    if which == 0:
        actions.puller[slot].effort = 1 if s.breath[slot] >= 0.5 else 0
    else:
        actions.puller[slot].effort = int(script_uniform(s, 0.0, 3.0))


def game() -> Game:
    """The rules of ``examples/Rope-v0``."""
    return Game(
        name="Rope",
        roles=(PULLER,),
        state=(("knot_m", "f8"), ("breath", "f8", (2,))),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("steady", "moody"),
        parameters=(Parameter("recovery", 0.3, 0.0, 1.0, "1", "breath that comes back per decision"),),
        horizon=200,
        end_reasons=("dragged_over",),
        zero_sum=True,
        symmetric_teams=True,
        determinism="cross-platform",
        default_opponent="steady",
    )


palaestra.register("examples/Rope-v0", game, about="two teams pull a rope")

if __name__ == "__main__":
    from typing import Any

    import gymnasium
    import numpy as np

    from palaestra.testing import check

    env: Any = gymnasium.make("examples/Rope-v0", opponent="moody", recovery=0.4)
    observation, info = env.reset(seed=0)
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step(1 if observation[1] >= 0.5 else 0)
        over = terminated or truncated
    winner, reason = env.unwrapped.team_names[info["winner"]], env.unwrapped.end_reasons[info["end_reason"]]
    print(f"one match: the winner is {winner} ({reason})")

    batch = palaestra.make_batch("examples/Rope-v0", num_envs=4096, opponents={"red": "steady", "blue": "moody"})
    batch.reset(seed=0)
    won = np.zeros(2, int)
    for _ in range(300):
        batch.step()
        won += [int((batch.rewards[:, 0] > 0).sum()), int((batch.rewards[:, 1] > 0).sum())]
    print(f"4096 matches at a time: steady won {won[0]}, moody {won[1]}")

    print(check("examples/Rope-v0"))
