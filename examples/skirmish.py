"""A battle by hand: two stalkers and three zealots that fire together beat as many that choose for themselves.

python examples/skirmish.py              # prints the winner
python examples/skirmish.py match.gif    # and draws the match (needs palaestra[render])
"""

import sys

import numpy as np

from palaestra.replay import Recorder, to_gif
from palaestra.zoo import skirmish_2s3z_v0

STOP, NORTH, SOUTH, EAST, WEST, FIRST_TARGET = range(1, 7)


def focus_fire(observations):
    """All attack the opponent that most of them can reach, of equals the weakest; the others go to the nearest.

    Takes the observations of all living agents, returns their actions. ``units`` has a row for each teammate, then for
    each opponent: seen, offset to the east and north, distance, hit points, shield and what else its table names.
    """
    reached, life = {}, {}
    for agent, seen in observations.items():
        can_attack = seen["action_mask"][FIRST_TARGET:]
        opponents = seen["observation"]["units"][-len(can_attack) :]
        for number in np.flatnonzero(can_attack):
            reached.setdefault(number, []).append(agent)
            life[number] = opponents[number, 4] + opponents[number, 5]
    actions = {agent: approach(seen) for agent, seen in observations.items()}
    for number in sorted(reached, key=lambda n: (len(reached[n]), -life[n])):  # the best one last
        actions.update(dict.fromkeys(reached[number], FIRST_TARGET + number))
    return actions


def approach(seen):
    """The move that leads to the nearest opponent in sight, along the longer of the two axes; else to the east."""
    legal = seen["action_mask"]
    opponents = seen["observation"]["units"][-len(legal[FIRST_TARGET:]) :]
    opponents = opponents[opponents[:, 0] == 1.0]
    if not len(opponents):
        return EAST if legal[EAST] else STOP
    east, north = opponents[opponents[:, 3].argmin(), 1:3]
    moves = [EAST if east > 0.0 else WEST, NORTH if north > 0.0 else SOUTH]
    moves = moves if abs(east) > abs(north) else moves[::-1]
    return next((move for move in moves if legal[move]), STOP)


env = skirmish_2s3z_v0.parallel_env(observation="dict", opponents={"blue": "builtin"})
with Recorder(env.sim) as recorder:
    observations, infos = env.reset(seed=7)
    while env.agents:
        observations, rewards, terminations, truncations, infos = env.step(focus_fire(observations))
winner = env.team_names[int(env.sim.info["winner"][0])] or "none"
dead = env.sim.info["dead"][0]
print(f"{winner} won after {env.sim.states['steps'][0]} decisions; red lost {dead[0]} units, blue {dead[1]}")
if len(sys.argv) > 1:
    print(f"{sys.argv[1]}: {to_gif(recorder.replay(), sys.argv[1])} pictures")
