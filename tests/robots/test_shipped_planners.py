"""The weights of SeqWM that are shipped."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")
pytest.importorskip("safetensors")

import palaestra_assets
from palaestra.evaluation import evaluate
from palaestra_baselines.common.policy_file import read_policy


@pytest.mark.slow  # 1 min each: 256 matches
@pytest.mark.parametrize(
    ("name", "id", "options"),
    [
        ("seqwm_quad_gate2", "palaestra/QuadGate2-v0", {}),
        ("seqwm_quad_push_box", "palaestra/QuadPushBox-v0", {}),
        ("seqwm_hand_over", "palaestra/HandOver-v0", {"commands": "grip"}),
    ],
)
def test_shipped_weights_play_new_matches_nearly_as_well_as_at_the_end_of_their_run(
    name: str, id: str, options: dict[str, Any]
):
    weights = palaestra_assets.path(f"weights/{name}.safetensors")
    played = evaluate(id, str(weights), matches=256, num_envs=64, **options)
    assert played.mean_return >= 0.9 * read_policy(weights)[1]["figures"]["return"] > 0.5
