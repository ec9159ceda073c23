"""Policies on atoms of continuous actions whose heads know that the atoms are ordered, for Stable-Baselines3.

Each dimension of a Box action is cut into K *atoms*, equally spaced from its lower to its upper bound. A policy chooses
an atom per dimension, independently of each other. Heads, K logits z_0 .. z_(K-1) per dimension each:

``poisson``           z_k = (k log lambda - log k!) / tau, lambda = softplus(f) + 1e-4: one output f per dimension. A
                      Poisson distribution cut off above K - 1, always unimodal ("Discretizing Continuous Action Space
                      with Unimodal Probability Distributions for On-Policy Reinforcement Learning",
                      arXiv 2408.00309; its code is not public). The temperature tau follows Beckham and Pal, "Unimodal
                      Probability Distributions for Deep Ordinal Classification" (ICML 2017).
``poisson_mirrored``  the same with the atoms in the opposite order: a Poisson distribution is sharper at its low end.
``ordinal``           Tang and Agrawal, "Discretizing Continuous Action Space for On-Policy Optimization" (AAAI 2020),
                      z_k = sum over j <= k of log s_j + sum over j > k of log(1 - s_j) with sigmoids s_j. As
                      log s - log(1 - s) is the input f of the sigmoid, z_k is f_1 + .. + f_k and a constant: K - 1
                      outputs. It knows the order, and may have several modes.
``categorical``       z_k = f_k: K outputs, which know no order.

Log-probabilities, entropies and divergences are exact sums over the atoms, in float64. Atoms travel as integers, from
the rollout to the loss: `AtomActions` and `AtomVecEnv` turn them into actions at the environment, so that any library
with MultiDiscrete actions can use the atoms, and `OrderedPolicy` is a policy class for Stable-Baselines3's on-policy
methods in such an environment::

    env = AtomVecEnv(make_vec_env("HalfCheetah-v5", 8), atoms=11)
    PPO(OrderedPolicy, env, policy_kwargs={"head": "poisson"}).learn(300_000)
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal, Self, cast, get_args

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import MultiCategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch import nn
from torch.nn import functional

Head = Literal["poisson", "poisson_mirrored", "ordinal", "categorical"]
TauMode = Literal["learnt", "fixed", "annealed"]
HEADS: tuple[str, ...] = get_args(Head)
TAU_MODES: tuple[str, ...] = get_args(TauMode)
LEAST_LAMBDA = 1e-4
TAU_BOUNDS = (0.05, 5.0)
ANNEALED_TO = 0.25
"""Share of its first value to which tau falls with ``tau="annealed"``."""


# -------------------------------------------------------------------------------------------------------------- atoms


class Atoms:
    """K atoms per dimension of a Box.

    Attributes:
        box: The actions.
        count: K.
        space: MultiDiscrete of K choices per dimension, int64 ``[D]``: the Box in C order.
    """

    def __init__(self, box: gymnasium.Space[Any], count: int) -> None:
        """Looks at the space.

        Args:
            box: A Box of real numbers with finite bounds.
            count: K, at least 2.

        Raises:
            ValueError: Another space, an infinite or empty range, or too few atoms.
        """
        if not isinstance(box, spaces.Box) or box.dtype.kind != "f":
            raise ValueError(f"atoms are made of a Box of real numbers, got {box}: its actions are discrete already")
        if not (np.isfinite(box.low).all() and np.isfinite(box.high).all()):
            raise ValueError(
                f"atoms need finite bounds, got {box}: give the actions bounds, with gymnasium.wrappers.RescaleAction "
                "or in the environment"
            )
        if not box.shape or not (box.low < box.high).all():
            raise ValueError(f"atoms need at least one dimension and a range in each, got {box}")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 2:
            raise ValueError(f"a dimension needs at least 2 atoms, got {count}")
        self.box, self.count = box, int(count)
        self.space = spaces.MultiDiscrete(np.full(box.low.size, self.count))
        low, high = box.low.astype(np.float64).ravel(), box.high.astype(np.float64).ravel()
        share = np.arange(self.count) / (self.count - 1)
        self._values = (low[:, None] * (1.0 - share) + high[:, None] * share).astype(box.dtype)

    def decode(self, atoms: Any) -> np.ndarray:
        """Actions ``[..., *box.shape]`` of atoms, integers ``[..., D]``."""
        atoms = np.asarray(atoms).astype(np.int64)
        actions = self._values[np.arange(len(self._values)), atoms]
        return actions.reshape(*atoms.shape[:-1], *self.box.shape)

    def encode(self, actions: Any) -> np.ndarray:
        """The nearest atoms, int64 ``[..., D]``, of actions ``[..., *box.shape]``."""
        actions = np.asarray(actions, np.float64)
        leading = actions.shape[: actions.ndim - len(self.box.shape)]
        distance = np.abs(actions.reshape(*leading, -1, 1) - self._values)
        return distance.argmin(axis=-1)


class AtomActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """A Gymnasium environment whose Box actions are chosen by atoms: MultiDiscrete in, Box out.

    Attributes:
        atoms: The atoms.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], atoms: int = 11) -> None:
        """See `Atoms` for the errors."""
        super().__init__(env)
        self.atoms = Atoms(env.action_space, atoms)
        self.action_space = self.atoms.space

    def action(self, action: Any) -> np.ndarray:
        """The action of some atoms."""
        return self.atoms.decode(action)


class AtomVecEnv(VecEnvWrapper):
    """`AtomActions` of a VecEnv of Stable-Baselines3.

    Attributes:
        atoms: The atoms.
    """

    def __init__(self, venv: VecEnv, atoms: int = 11) -> None:
        """See `Atoms` for the errors."""
        self.atoms = Atoms(venv.action_space, atoms)
        super().__init__(venv, action_space=self.atoms.space)

    def reset(self) -> Any:
        """Resets all environments."""
        return self.venv.reset()

    def step_async(self, actions: np.ndarray) -> None:
        """Decodes the atoms ``[num_envs, D]``."""
        self.venv.step_async(self.atoms.decode(actions))

    def step_wait(self) -> Any:
        """Results of the step."""
        return self.venv.step_wait()


# --------------------------------------------------------------------------------------------------------------- heads


def poisson_logits(rate: torch.Tensor, tau: torch.Tensor | float, atoms: int) -> torch.Tensor:
    """Logits ``[..., K]`` of a Poisson distribution cut off above K - 1.

    Args:
        rate: lambda, greater than 0, ``[...]``.
        tau: Temperature, of a shape that fits.
        atoms: K.
    """
    k, log_factorials = counts(atoms, rate.dtype)
    tau = torch.as_tensor(tau, dtype=rate.dtype)
    return (k * rate.log().unsqueeze(-1) - log_factorials) / tau.unsqueeze(-1)


@cache
def counts(atoms: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers k of all atoms, and log k!, ``[K]`` each."""
    k = torch.arange(atoms, dtype=dtype)
    return k, torch.lgamma(k + 1.0)


def mean_and_std(log_probs: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of atoms that are spread over [-1, 1], of log-probabilities ``[K]``."""
    probs, at = np.exp(log_probs), np.linspace(-1.0, 1.0, len(log_probs))
    mean = float(probs @ at)
    return mean, math.sqrt(max(float(probs @ at**2) - mean**2, 0.0))


@cache
def centred_poisson(atoms: int, std: float | None = None, tau: float = 1.0) -> tuple[float, float]:
    """Lambda and tau of the Poisson head whose mean is the middle of the range.

    Args:
        atoms: K.
        std: Wanted standard deviation in half ranges; None keeps ``tau``. Where tau would leave `TAU_BOUNDS`, the
            nearest deviation that it allows.
        tau: Used without ``std``.
    """

    def log_probs(rate: float, tau: float) -> np.ndarray:
        logits = poisson_logits(torch.tensor(rate, dtype=torch.float64), tau, atoms)
        return torch.log_softmax(logits, -1).numpy()

    def middle(tau: float) -> float:
        low, high = math.log(LEAST_LAMBDA), math.log(1e4)
        for _ in range(60):
            centre = (low + high) / 2.0
            low, high = (centre, high) if mean_and_std(log_probs(math.exp(centre), tau))[0] < 0.0 else (low, centre)
        return math.exp((low + high) / 2.0)

    if std is not None:
        low, high = map(math.log, TAU_BOUNDS)
        for _ in range(50):
            centre = math.exp((low + high) / 2.0)
            spread = mean_and_std(log_probs(middle(centre), centre))[1]
            low, high = (math.log(centre), high) if spread < std else (low, math.log(centre))
        tau = math.exp((low + high) / 2.0)
    return middle(tau), tau


class OrderedHead(nn.Module):
    """The last layer of a policy: log-probabilities of the atoms.

    All heads start with the same distribution in all states, that of `centred_poisson`.

    Attributes:
        head: See the module.
        tau_mode: ``"learnt"``: a parameter per dimension, clipped to `TAU_BOUNDS`; ``"fixed"``: 1; ``"annealed"``:
            falls geometrically to `ANNEALED_TO` of its first value, see `anneal`. Poisson heads alone have it.
        atoms: K.
        linear: Features to outputs.
        log_tau: Natural logarithm of tau ``[D]``; Poisson heads alone.
    """

    start: torch.Tensor

    def __init__(
        self,
        inputs: int,
        dimensions: int,
        atoms: int,
        head: str = "poisson",
        tau: str = "learnt",
        start_std: float = 0.5,
    ) -> None:
        """Weights are those of `torch.nn.Linear`.

        Args:
            inputs: Features.
            dimensions: D, of the action.
            atoms: K.
            head: One of `HEADS`.
            tau: One of `TAU_MODES`.
            start_std: Standard deviation of the first actions in half ranges; with ``tau="fixed"`` it follows from K.

        Raises:
            ValueError: Another head or mode, or a deviation that no distribution has.
        """
        super().__init__()
        if head not in HEADS:
            raise ValueError(f"head is one of {', '.join(HEADS)}, got {head!r}")
        if tau not in TAU_MODES:
            raise ValueError(f"tau is one of {', '.join(TAU_MODES)}, got {tau!r}")
        if not 0.0 < start_std < 1.0:
            raise ValueError(f"start_std lies between 0 and 1 half range, got {start_std}")
        self.head, self.tau_mode, self.dimensions, self.atoms = head, tau, dimensions, atoms
        fixed = tau == "fixed" and self.is_poisson
        rate, first_tau = centred_poisson(atoms, None if fixed else start_std)
        self._first_log_tau = math.log(first_tau)
        if self.is_poisson:
            value = rate - LEAST_LAMBDA
            start = torch.full((dimensions,), value + math.log(-math.expm1(-value)), dtype=torch.float64)
            log_tau = torch.full((dimensions,), self._first_log_tau)
            self.log_tau = nn.Parameter(log_tau, requires_grad=tau == "learnt")
        else:
            logits = poisson_logits(torch.tensor(rate, dtype=torch.float64), first_tau, atoms)
            logits = logits.diff() if head == "ordinal" else torch.log_softmax(logits, -1)
            start = logits.repeat(dimensions)
        self.register_buffer("start", start)
        self.linear = nn.Linear(inputs, len(start))

    @property
    def is_poisson(self) -> bool:
        """Whether it has lambda and tau."""
        return self.head.startswith("poisson")

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Log-probabilities float64 ``[B, D, K]`` of features ``[B, inputs]``."""
        outputs = self.linear(features).double() + self.start
        if self.is_poisson:
            rate = functional.softplus(outputs) + LEAST_LAMBDA
            logits = poisson_logits(rate, self.log_tau.double().exp(), self.atoms)
            if self.head == "poisson_mirrored":
                logits = logits.flip(-1)
        elif self.head == "ordinal":
            steps = outputs.view(len(outputs), self.dimensions, self.atoms - 1)
            logits = functional.pad(steps.cumsum(-1), (1, 0))
        else:
            logits = outputs.view(len(outputs), self.dimensions, self.atoms)
        return torch.log_softmax(logits, -1)

    def anneal(self, share: float) -> None:
        """Sets tau for a share of the training in [0, 1]; does nothing in the other modes."""
        if self.is_poisson and self.tau_mode == "annealed":
            with torch.no_grad():
                self.log_tau.fill_(self._first_log_tau + min(share, 1.0) * math.log(ANNEALED_TO))
            self.clip_tau()

    def clip_tau(self) -> None:
        """Puts tau back to its bounds; called after each gradient step."""
        if self.is_poisson:
            with torch.no_grad():
                self.log_tau.clamp_(*map(math.log, TAU_BOUNDS))


class OrderedDistribution(MultiCategoricalDistribution):
    """Independent atoms per dimension, as a distribution of Stable-Baselines3.

    Attributes:
        log_probs: float64 ``[B, D, K]``, after `proba_distribution`.
    """

    log_probs: torch.Tensor

    def __init__(
        self, action_dims: list[int], head: str = "poisson", tau: str = "learnt", start_std: float = 0.5
    ) -> None:
        """See `OrderedHead`.

        Raises:
            ValueError: The dimensions have different numbers of atoms.
        """
        super().__init__(action_dims)
        if len(set(action_dims)) != 1 or action_dims[0] < 2:
            raise ValueError(f"all dimensions have the same number of atoms, at least 2, got {action_dims}")
        self.head, self.tau, self.start_std = head, tau, start_std

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        """The head on features ``[B, latent_dim]``."""
        dims = self.action_dims
        return OrderedHead(latent_dim, len(dims), dims[0], self.head, self.tau, self.start_std)

    def proba_distribution(self, action_logits: torch.Tensor) -> Self:
        """Takes the output of the head."""
        self.log_probs = action_logits
        return self

    def log_prob(self, actions: torch.Tensor) -> torch.Tensor:
        """float32 ``[B]`` of atoms ``[B, D]``, whole numbers of any dtype."""
        atoms = actions.long().unsqueeze(-1)
        return self.log_probs.gather(-1, atoms).sum(dim=(-2, -1)).float()

    def entropy(self) -> torch.Tensor:
        """float32 ``[B]``, in nats."""
        return -(self.log_probs.exp() * self.log_probs).sum(dim=(-2, -1)).float()

    def kl_divergence(self, other: OrderedDistribution) -> torch.Tensor:
        """Divergence of the other distribution from this one, sum of p log(p / q), float32 ``[B]``."""
        return (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum(dim=(-2, -1)).float()

    def sample(self) -> torch.Tensor:
        """Atoms int64 ``[B, D]``."""
        cumulated = self.log_probs.exp().cumsum(-1)
        drawn = torch.rand(*cumulated.shape[:-1], 1, dtype=cumulated.dtype)
        return (drawn >= cumulated).sum(-1).clamp(max=cumulated.shape[-1] - 1)  # the sum may end below 1

    def mode(self) -> torch.Tensor:
        """The most probable atoms, int64 ``[B, D]``."""
        return self.log_probs.argmax(-1)


class OrderedPolicy(ActorCriticPolicy):
    """An actor-critic policy of Stable-Baselines3 with one of the heads of this module.

    Its actions are MultiDiscrete: see `AtomActions` and `AtomVecEnv`. It is saved and loaded as any policy is.
    """

    def __init__(
        self, *args: Any, head: str = "poisson", tau: str = "learnt", start_std: float = 0.5, **kwargs: Any
    ) -> None:
        """Builds the networks.

        Args:
            *args: Of `ActorCriticPolicy`.
            head: See `OrderedHead`.
            tau: Likewise.
            start_std: Likewise.
            **kwargs: Of `ActorCriticPolicy`.
        """
        self._options = {"head": head, "tau": tau, "start_std": start_std}
        super().__init__(*args, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        """Replaces the distribution before the networks are built.

        Raises:
            ValueError: The actions are no atoms.
        """
        space = self.action_space
        if not isinstance(space, spaces.MultiDiscrete) or space.nvec.ndim != 1:
            raise ValueError(
                f"OrderedPolicy chooses atoms, a MultiDiscrete, got {space}: wrap the environment in AtomActions or "
                "AtomVecEnv"
            )
        self.action_dist = OrderedDistribution([int(n) for n in space.nvec], **self._options)
        super()._build(lr_schedule)
        head = cast(OrderedHead, self.action_net)
        self.optimizer.register_step_post_hook(lambda *_: head.clip_tau())

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), **self._options}
