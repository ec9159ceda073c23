"""What users hold: Gymnasium's Env and VectorEnv, PettingZoo's ParallelEnv. They know simulations, no family."""
