"""Language models that play text environments: a tiny one, its tokens, rollouts, losses and base weights."""
