"""TorchRL's PPO on a native batch: three chasers share a policy and learn to touch a runner that moves at random.

    pip install torchrl tensordict
    python examples/train_with_torchrl.py [decisions]

On TeamTag a match holds 50 decisions, and each touch pays the chasers 1. In 400 thousand decisions, under a minute on
one core, the reward of a match rises from below 1 to about 11.
"""

# pyright: reportMissingImports=false

import sys
import warnings

import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.modules import MLP, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss

from palaestra.adapters.torchrl import TorchRLEnv

LANES, STEPS, MINIBATCHES, EPOCHS = 256, 50, 8, 4


def main(decisions: int) -> None:
    """Trains for ``decisions`` steps of a match, summed over the lanes."""
    warnings.simplefilter("ignore")  # TorchRL warns of its next versions
    torch.manual_seed(0)
    torch.set_num_threads(1)
    env = TorchRLEnv("palaestra/TeamTag-v0", LANES, opponents={"blue": "random"}, state=False)
    env.set_seed(0)
    size, choices = env.observation_spec["red", "observation"].shape[-1], env.full_action_spec["red", "action"].n
    network = MLP(size, choices, num_cells=[64, 64])
    actor = ProbabilisticActor(
        TensorDictModule(network, [("red", "observation")], [("red", "logits")]),
        in_keys={"logits": ("red", "logits")},
        out_keys=[("red", "action")],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
        log_prob_key=("red", "log_prob"),
    )
    critic = TensorDictModule(MLP(size, 1, num_cells=[64, 64]), [("red", "observation")], [("red", "value")])
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    loss.set_keys(
        action=("red", "action"),
        sample_log_prob=("red", "log_prob"),
        value=("red", "value"),
        reward=("red", "reward"),
        done=("red", "done"),
        terminated=("red", "terminated"),
    )
    loss.make_value_estimator(gamma=0.98, lmbda=0.95)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    touches = []
    frames = LANES * STEPS  # a match lasts 50 decisions, so a batch holds whole matches
    for data in Collector(env, actor, frames_per_batch=frames, total_frames=max(decisions // frames, 1) * frames):
        rewards = data["next", "red", "reward"]
        touches.append(rewards[..., 0, 0].sum(1).mean().item())
        for name in ("done", "terminated"):  # of the match, for each of its agents
            data["next", "red", name] = data["next", name].unsqueeze(-1).expand_as(rewards)
        networks = {"params": loss.critic_network_params, "target_params": loss.target_critic_network_params}
        with torch.no_grad():
            loss.value_estimator(data, **networks)
        advantage = data["advantage"]
        data["advantage"] = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        samples = data.reshape(-1)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(samples)).chunk(MINIBATCHES):
                losses = loss(samples[rows])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
                torch.nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
                optimizer.step()
    print(f"{len(touches) * frames} decisions: reward of a match {touches[0]:.1f} at first, {touches[-1]:.1f} at last")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400_000)
