"""RLlib's PPO on TeamPong: one policy a team, both learn.

    pip install "palaestra[ray]"
    python examples/train_with_rllib.py 40000
    python examples/train_with_rllib.py 40000 2

The numbers are those of the decisions of matches, and of RLlib's env runners: processes that play, on any machine of
the cluster. Without any, the matches are played in the process of the learner.
"""

# pyright: reportMissingImports=false

import sys

from ray.rllib.algorithms.ppo import PPOConfig

from palaestra.adapters.rllib import policy_by_team, register

BATCH = 2000
decisions = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
runners = int(sys.argv[2]) if len(sys.argv) > 2 else 0
config = (
    PPOConfig()
    .environment(register("palaestra/TeamPong-v0"))
    .env_runners(num_env_runners=runners, num_envs_per_env_runner=8)
    .training(train_batch_size_per_learner=BATCH, minibatch_size=500, num_epochs=4)
    .multi_agent(policies={"red", "blue"}, policy_mapping_fn=policy_by_team)
)
algorithm = config.build_algo()
result: dict = {}
for _ in range(max(1, decisions // BATCH)):
    result = algorithm.train()
algorithm.stop()
returns = result["env_runners"]["agent_episode_returns_mean"]
print(f"after {decisions} decisions: red_0 earns {returns['red_0']:.2f} a match")
