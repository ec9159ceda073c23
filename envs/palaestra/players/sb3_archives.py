"""Files that Stable-Baselines3's ``model.save`` wrote, read without running anything in them.

Such a file is a zip archive: ``data`` is JSON in which spaces and classes are pickles, ``policy.pth`` the weights.
``PPO.load`` unpickles, and a pickle may run any code. Here the pickles are left alone: weights are read by
`palaestra.players.torch_weights`, the kinds of the spaces and the activation from the text beside each pickle, the
layers from the names and shapes of the weights. Policies of the library with fully connected layers can be read so
(``MlpPolicy`` and ``MultiInputPolicy`` of PPO, A2C, MaskablePPO, DQN, SAC, TD3, DDPG); others are refused.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.files import FileError, printable, read_limited
from palaestra.core.files.archive import DAMAGES
from palaestra.core.run.opponents import MOST_POLICY_BYTES
from palaestra.players.choosing import Chance, as_choices, as_reals, choose, from_unit, probabilities
from palaestra.players.errors import first_line
from palaestra.players.model_player import ModelPlayer
from palaestra.players.torch_weights import read_weights
from palaestra.players.views import TeamView

LOAD = "load it yourself if you trust it, for example PPO.load(path), and give palaestra.players.as_opponent(model)"
MOST_JSON_BYTES = 10_000_000
"""Of ``data``: its lists may need 20 times as much memory; those of a model have some ten thousand bytes."""
MOST_MEMBERS = 10_000
LISTED = b"PK\1\2"
"""What each entry in the list of a zip archive begins with; a list is read before one can ask how long it is."""
MODULES = re.compile(r"stable_baselines3\.(common|sac|td3|dqn)\.policies|sb3_contrib\.common\.maskable\.policies")
HARMLESS = {
    *(":type:", ":serialized:", "net_arch", "activation_fn", "ortho_init", "log_std_init", "share_features_extractor"),
    *("normalize_images", "n_critics", "use_sde", "use_expln", "clip_mean", "optimizer_class", "optimizer_kwargs"),
    "full_std",
}
"""Keywords of a policy that change nothing but the layers' sizes, their activation, or training."""
IGNORED = re.compile(r"(value_net|mlp_extractor\.value_net|q_net_target|critic|critic_target|actor_target)\.")
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "LeakyReLU": lambda x: np.where(x > 0, x, np.float32(0.01) * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "SiLU": lambda x: x / (1 + np.exp(-x)),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
Layers = list[tuple[np.ndarray, np.ndarray]]
"""``(W [outputs, inputs], b [outputs])`` of each layer."""


class _Unreadable(Exception):
    """Why an archive cannot be read without unpickling."""


@dataclass
class Sb3Network:
    """The network of a file that Stable-Baselines3 wrote; also see `palaestra.players.model_player.Model`.

    Attributes:
        name: File name without its suffix.
        kind: ``"actor-critic"``, ``"values"`` (DQN), ``"squashed"`` (SAC, TD3).
        sees, does: Classes of its spaces: ``"Box"``, ``"Dict"``; ``"Discrete"``, ``"MultiDiscrete"``, ``"Box"``.
        layers: Of the action: activations are between them.
        activation: Name in `ACTIVATIONS`.
        log_std: Logarithms of the standard deviations, float32 ``[K]`` (PPO), or the layer that gives them (SAC).
        outputs: See `Model`.
    """

    name: str
    kind: str
    sees: str
    does: str
    layers: Layers
    activation: str
    log_std: Any = None
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def forms(self) -> tuple[Form | None, ...]:
        """See `Model`."""
        return ("dict",) if self.sees == "Dict" else ("flat",)

    @property
    def choices(self) -> tuple[ChoicesMode, ...]:
        """See `Model`."""
        return ("separate", "discrete") if self.does == "Discrete" else ("separate",)

    @property
    def spaces(self) -> str:
        """See `Model`."""
        inputs, outputs = self.layers[0][0].shape[1], self.layers[-1][0].shape[0]
        return f"{self.sees} of {inputs} numbers -> {self.does} by {outputs} numbers"

    def refusal(self, view: TeamView) -> str:
        """See `Model`."""
        space = view.observation_space
        parts = list(space.values()) if self.sees == "Dict" and hasattr(space, "values") else [space]  # type: ignore[attr-defined]
        inputs = sum(int(np.prod(part.shape or ())) for part in parts)
        outputs = sum(view.sizes) or int(np.prod(view.action_space.shape or ()))
        fits = (
            type(space).__name__ == self.sees
            and type(view.action_space).__name__ == self.does
            and (self.layers[0][0].shape[1], self.layers[-1][0].shape[0]) == (inputs, outputs)
        )
        return "" if fits else "other spaces"

    def act(self, view: TeamView, rows: Any, masks: np.ndarray | None, chance: Chance | None) -> np.ndarray:
        """See `Model`."""
        parts = [rows[name] for name in view.observation_space] if isinstance(rows, dict) else [rows]  # type: ignore[attr-defined]
        hidden = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1).astype(np.float32)
        for weight, bias in self.layers[:-1]:
            hidden = ACTIVATIONS[self.activation](hidden @ weight.T + bias)
        weight, bias = self.layers[-1]
        out = hidden @ weight.T + bias
        if chance is not None and (self.kind == "values" or (not view.sizes and self.log_std is None)):
            raise ValueError("the model gives no distribution to draw from: deterministic=True")
        self.outputs = {}
        if view.sizes:
            if self.kind == "values":
                self.outputs = {"action value": out}
            elif len(view.sizes) == 1:
                self.outputs = {"probability": probabilities(out, masks)}
            return as_choices(choose(out, masks, view.sizes, chance), view.action_space)
        if chance is not None:
            out = out + np.exp(self._log_std(hidden)) * chance.normals(out.shape[1])
        return (
            from_unit(np.tanh(out), view.action_space) if self.kind == "squashed" else as_reals(out, view.action_space)
        )

    def _log_std(self, hidden: np.ndarray) -> np.ndarray:
        if self.kind != "squashed":
            return self.log_std
        weight, bias = self.log_std
        return np.clip(hidden @ weight.T + bias, -20.0, 2.0)  # LOG_STD_MIN, LOG_STD_MAX of SAC


def read_file(path: Path) -> ModelPlayer:
    """Player of an archive of Stable-Baselines3.

    Raises:
        FileError: Not such an archive, or one that cannot be read without unpickling; the message gives the remedy.
    """
    try:
        data, weights = _members(path)
        return ModelPlayer(network_of(path.stem, data, weights), file=path)
    except _Unreadable as error:
        raise FileError(f"{path}: {error}: {LOAD}") from error


def _members(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON and the weights of an archive.

    Raises:
        FileError: It is none, or damaged.
    """
    content = read_limited(path, MOST_POLICY_BYTES)
    if content.count(LISTED) > MOST_MEMBERS:  # those of policy.pth count too, which is not compressed
        raise FileError(f"{path}: no model of Stable-Baselines3, it has more than {MOST_MEMBERS} members")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            missing = {"data", "policy.pth"} - set(archive.namelist())
            if missing:
                raise FileError(
                    f"{path}: no model of Stable-Baselines3, {' and '.join(sorted(missing))} is missing in it"
                )
            data = json.loads(_stored(archive, "data", MOST_JSON_BYTES))
            weights = _stored(archive, "policy.pth", len(content))
    except FileError:
        raise
    except DAMAGES as error:
        raise FileError(f"{path}: a damaged file, or no model of Stable-Baselines3 ({first_line(error)})") from error
    if not isinstance(data, dict):
        raise FileError(f"{path}: no model of Stable-Baselines3, its data is no table")
    try:
        return data, read_weights(weights)
    except DAMAGES as error:
        raise FileError(f"{path}: its policy.pth holds no plain weights ({first_line(error)})") from error


def _stored(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """A member of an archive, which must not be compressed: its size is then bounded by that of the file."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > most:
        raise _Unreadable(f"its {name} is compressed or too large, as Stable-Baselines3 writes none")
    return archive.read(entry)


def network_of(name: str, data: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> Sb3Network:
    """The network that an archive's members describe.

    Raises:
        _Unreadable: Not a policy of the library with fully connected layers alone.
    """
    policy = _text(data.get("policy_class"), "__module__")
    if not MODULES.fullmatch(policy):
        module = printable(policy) if policy else "an unknown module"
        raise _Unreadable(f"its policy class is of {module}, whose code would have to run")
    keywords = data.get("policy_kwargs") or {}
    unknown = sorted(set(keywords) - HARMLESS) if isinstance(keywords, dict) else ["policy_kwargs"]
    if unknown:
        raise _Unreadable(f"its policy has the keyword {printable(unknown[0])}")
    if data.get("use_sde"):
        raise _Unreadable("it explores by gSDE (use_sde)")
    sees, does = (_space_class(data.get(key)) for key in ("observation_space", "action_space"))
    weights = {key: array for key, array in weights.items() if not IGNORED.match(key)}
    kind, layers, log_std = _parts(weights)
    given = re.search(r"(\w+)'>$", _text(keywords, "activation_fn"))
    activation = given[1] if given else "Tanh" if kind == "actor-critic" else "ReLU"
    if activation not in ACTIVATIONS:
        raise _Unreadable(f"its activation is {printable(activation)}, known are {', '.join(ACTIVATIONS)}")
    return Sb3Network(name, kind, sees, does, layers, activation, log_std)


def _parts(weights: dict[str, np.ndarray]) -> tuple[str, Layers, Any]:
    """Kind, layers and standard deviation of the weights, of which none may be left over."""
    log_std: Any = None
    if "action_net.weight" in weights:
        kind = "actor-critic"
        layers = [*_chain(weights, "mlp_extractor.policy_net."), _layer(weights, "action_net.")]
        log_std = weights.pop("log_std", None)
    elif "q_net.q_net.0.weight" in weights:
        kind, layers = "values", _chain(weights, "q_net.q_net.")
    elif "actor.mu.weight" in weights:
        kind = "squashed"
        layers = [*_chain(weights, "actor.latent_pi."), _layer(weights, "actor.mu.")]
        log_std = _layer(weights, "actor.log_std.")
    else:
        kind, layers = "squashed", _chain(weights, "actor.mu.")
    if weights or not layers:
        left = next(iter(weights), "nothing")
        raise _Unreadable(f"its network has other parts than fully connected layers ({printable(left)})")
    sizes = [(weight.shape, bias.shape) for weight, bias in layers]
    joined = all(one[0][0] == other[0][1] for one, other in itertools.pairwise(sizes))
    if not joined or any(len(w) != 2 or b != w[:1] for w, b in sizes):
        raise _Unreadable("its layers do not fit each other")
    outputs = layers[-1][0].shape
    if log_std is not None and [np.shape(part) for part in log_std] != (
        [outputs, outputs[:1]] if kind == "squashed" else [()] * outputs[0]
    ):
        raise _Unreadable("its standard deviations do not fit its actions")
    return kind, layers, log_std


def _chain(weights: dict[str, np.ndarray], prefix: str) -> Layers:
    """Layers 0, 2, 4, ... of a sequence, whose other members are activations."""
    layers: Layers = []
    while f"{prefix}{2 * len(layers)}.weight" in weights:
        layers.append(_layer(weights, f"{prefix}{2 * len(layers)}."))
    return layers


def _layer(weights: dict[str, np.ndarray], prefix: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        return weights.pop(f"{prefix}weight"), weights.pop(f"{prefix}bias")
    except KeyError as error:
        raise _Unreadable(f"its network has no {printable(error.args[0])}") from error


def _text(item: Any, key: str) -> str:
    """A text beside a pickle; empty where there is none."""
    found = item.get(key, "") if isinstance(item, dict) else ""
    return found if isinstance(found, str) else ""


def _space_class(item: Any) -> str:
    found = re.fullmatch(
        r"<class 'gym(?:nasium)?\.spaces\.\w+\.(Box|Dict|Discrete|MultiDiscrete)'>", _text(item, ":type:")
    )
    if not found:
        raise _Unreadable("its spaces are not those of a game here")
    return found[1]
