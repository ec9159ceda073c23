"""Trained models as players: Stable-Baselines3, PyTorch, ONNX, and plain callables.

model = PPO("MlpPolicy", as_vec_env("palaestra/TeamTag-v0", 64)).learn(100_000)
evaluate("palaestra/TeamTag-v0", as_opponent(model), "default")
"""

from __future__ import annotations

from typing import Any

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.players.agent_rows import AgentsMode
from palaestra.players.model_player import Model, ModelPlayer


def as_opponent(
    model: Any,
    *,
    deterministic: bool = True,
    agents: AgentsMode | None = None,
    observation: Form | None = None,
    choices: ChoicesMode = "separate",
) -> ModelPlayer:
    """Makes a player of a trained model.

    The model sees rows as `gymnasium.make`, `palaestra.adapters.sb3.as_vec_env` or `palaestra.adapters.rows` show
    them. Forbidden alternatives are never chosen, real numbers are clipped to their bounds. The model is not copied:
    what trains on trains the player too (a file of the model stays as it was saved).

    Args:
        model: One of

            * a model or policy of Stable-Baselines3 or sb3-contrib;
            * a ``torch.nn.Module`` on a float tensor ``[rows, size]`` (or a dict of tensors):
              logits ``[rows, sum of alternatives]`` of choices, or real numbers ``[rows, K]``;
            * an ``onnxruntime.InferenceSession`` of the same;
            * a callable of the same on NumPy arrays, which may also return integer actions ``[rows]``, ``[rows, K]``.

        deterministic: Take the likeliest action; False draws from the model's distribution, by the seed of the lane:
            the draws do not depend on what is played beside it.
        agents: ``"joint"``: a row is a lane, its action that of the whole team; ``"rows"``: a row is one agent. None is
            what fits the model.
        observation: ``"flat"`` or ``"dict"`` for models without declared spaces; None is the game's default.
        choices: ``"discrete"``: logits are of all combinations of a row's choices, likewise.

    Raises:
        TypeError: Not a model.
        ValueError: An unknown option, or a model that does not choose its actions by observations alone.
    """
    if agents not in (None, "joint", "rows"):
        raise ValueError(f'agents must be "joint", "rows" or None, got {agents!r}')
    if observation not in (None, "flat", "dict"):
        raise ValueError(f'observation must be "flat", "dict" or None, got {observation!r}')
    if choices not in ("separate", "discrete"):
        raise ValueError(f'choices must be "separate" or "discrete", got {choices!r}')
    return ModelPlayer(_model(model, observation, choices), deterministic, agents)


def _model(model: Any, observation: Form | None, choices: ChoicesMode) -> Model:
    modules = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if {"stable_baselines3", "sb3_contrib"} & modules:
        from palaestra.players.sb3_models import Sb3Model

        return Sb3Model(model)
    if "torch" in modules:
        from palaestra.players.torch_models import TorchModel

        return TorchModel(model, observation, choices)
    from palaestra.players.array_models import CallableModel
    from palaestra.players.onnx_models import OnnxModel

    if "onnxruntime" in modules:
        return OnnxModel(model, observation, choices)
    if callable(model):
        return CallableModel(model, observation, choices)
    raise TypeError(
        "a model is one of Stable-Baselines3, a torch module, an onnxruntime.InferenceSession or a callable on "
        f"observations, got {type(model).__name__}"
    )
