"""BenchMARL's MAPPO on a native batch: three chasers learn to touch a runner that moves at random (TeamTag).

    pip install benchmarl
    python examples/train_with_benchmarl.py [decisions]

The win rates, rewards and losses go to CSV files in a temporary folder, whose name is printed. In 250 thousand
decisions the reward of a match rises from below 1 to about 6. Leave ``opponents`` out and the runner learns as well,
with a policy of its own.
"""

# pyright: reportMissingImports=false

import sys
import tempfile

import torch
from benchmarl.algorithms import MappoConfig
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig

from palaestra.adapters.benchmarl import PalaestraTask


def main(decisions: int) -> None:
    """Trains for about ``decisions`` steps of a match, summed over the lanes."""
    torch.set_num_threads(1)
    config = ExperimentConfig.get_from_yaml()
    config.loggers, config.save_folder = ["csv"], tempfile.mkdtemp()
    config.evaluation, config.render, config.create_json = False, False, False
    config.max_n_frames = decisions
    config.on_policy_n_envs_per_worker = 256
    config.on_policy_collected_frames_per_batch = 256 * 50
    config.on_policy_minibatch_size, config.on_policy_n_minibatch_iters = 1600, 4
    config.lr, config.gamma = 1e-3, 0.98
    experiment = Experiment(
        task=PalaestraTask("palaestra/TeamTag-v0", opponents={"blue": "random"}),
        algorithm_config=MappoConfig.get_from_yaml(),
        model_config=MlpConfig.get_from_yaml(),
        critic_model_config=MlpConfig.get_from_yaml(),
        seed=0,
        config=config,
    )
    experiment.run()
    print(f"mean reward of a match in the last batch: {experiment.mean_return:.1f}; log in {config.save_folder}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 250_000)
