"""A trained team in battle: loads the file of a policy and lets it play red.

pip install "palaestra[baselines]"
python examples/trained_battle.py                            # bundled weights, on the map on which they learnt
python examples/trained_battle.py runs/vdn/Skirmish-3m-v0/seed_0/last.safetensors palaestra/Skirmish-3m-v0

The file names its method. Most networks play the map on which they learnt alone; one that reads a row for each
unit by the same weights plays others too.
"""

import sys

import palaestra
import palaestra_assets
from palaestra.evaluation import evaluate

policy, battle = palaestra_assets.path("weights/skirmish_2s3z.safetensors"), "palaestra/Skirmish-2s3z-v0"
if len(sys.argv) == 3:
    policy, battle = sys.argv[1:]

print(evaluate(battle, policy, "builtin", matches=256, swap=False))  # red's matches, with a 95 % interval

sim = palaestra.make_batch(battle, num_envs=64, opponents={"red": policy, "blue": "builtin"}, autoreset_mode="off")
sim.reset(seed=7)
steps = 0
while not (sim.terminated | sim.truncated).all():
    sim.step()  # a match that is over stays as it is
    steps += 1
won = sim.info["winner"] == 0
living = sim.alive[won, : len(sim.game.teams["red"])].sum() / max(won.sum(), 1)
print(f"red won {won.sum()} of 64 matches within {steps} decisions, with {living:.1f} units left on average")
