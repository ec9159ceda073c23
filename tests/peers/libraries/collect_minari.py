# pyright: reportMissingImports=false
"""Minari: datasets of episodes of all ids, infos included, and the environment made again from a dataset."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import gymnasium
import minari
import numpy as np
from peers.libraries.more_ids import ALL, TEXTS, TWO
from peers.libraries.trials import STEPS, main, trial, trial_of_ids


def collect(id: str, dataset: str, steps: int = STEPS, **keywords: Any) -> None:
    """Collects random play with infos, reads it back and makes the environment again."""
    env = minari.DataCollector(gymnasium.make(id, **keywords), record_infos=True)
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(steps):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    made = env.create_dataset(dataset_id=dataset, algorithm_name="random")
    again = minari.load_dataset(dataset)
    assert again.total_episodes == made.total_episodes > 0
    episode = next(iter(again.iterate_episodes()))
    assert "winner" in episode.infos
    assert len(np.asarray(episode.infos["winner"])) == len(episode.rewards) + 1
    recovered = again.recover_environment()
    recovered.reset(seed=0)
    recovered.step(recovered.action_space.sample())
    env.close()


@trial_of_ids("collected, loaded, made again, with infos", ALL, limits={"'maxshape' must have same rank": TEXTS})
def _(id: str) -> None:
    collect(id, f"all/{id.partition('/')[2].lower()}", steps=30)


@trial("box", "UcavTrack with infos, made again from the dataset")
def _() -> None:
    collect("palaestra/UcavTrack-v3", "track/random-v0", max_episode_steps=40)


@trial("opponent", "TeamPong, TeamTag, UcavDogfight with infos")
def _() -> None:
    for id, dataset in (("TeamPong", "pong"), ("TeamTag", "tag"), ("UcavDogfight", "dogfight")):
        collect(f"palaestra/{id}-v0", f"{dataset}/random-v0")


@trial("choices", "MultiDiscrete, unlike roles, masks, Dict observations")
def _() -> None:
    collect("palaestra/ArenaDuel2v2-v0", "arena/random-v0", observation="dict")
    collect("palaestra/SpeakerListener-v0", "speaker/random-v0")
    collect(TWO, "masked/random-v0")
    collect(TWO, "masked_dict/random-v0", mask="obs")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MINARI_DATASETS_PATH"] = folder
        main("minari")
