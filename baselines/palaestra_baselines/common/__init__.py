"""What several methods share: agents, rollouts, the training loop, networks, files of a run."""
