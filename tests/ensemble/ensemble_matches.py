"""Matches of LLMEnsemble, for its tests."""

from typing import Any

import numpy as np

from palaestra import make_batch
from palaestra.games.ensemble.ensemble_rules import SECOND_SHARE

ONE, EXPERTS = "palaestra/LLMEnsemble-v0", "palaestra/LLMEnsemble-Multi-v0"
K, D, V, SPANS, SPAN_TOKENS = 3, 5, 24, 6, 4


def started(lanes: int, seed: int = 0, id: str = ONE, **keywords: Any) -> Any:
    sim = make_batch(id, lanes, autoreset_mode="off", **keywords)
    sim.reset(seed=seed)
    return sim


def dense(states: np.ndarray, tokens: int = SPAN_TOKENS) -> np.ndarray:
    """Distributions of the next span, float64 ``[N, tokens, K, V]``, written out."""
    confidence = states["confidence"][:, :tokens]
    second = SECOND_SHARE * (1.0 - confidence)
    probs = np.repeat(((1.0 - confidence - second) / V)[..., None], V, axis=-1)
    for place, mass in (("top", confidence), ("second", second)):
        np.put_along_axis(probs, token := states[place][:, :tokens, :, None].astype(np.int64), 0.0, -1)
        np.put_along_axis(probs, token, mass[..., None] + ((1.0 - confidence - second) / V)[..., None], -1)
    return probs
