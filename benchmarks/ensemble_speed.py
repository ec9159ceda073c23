"""Speed of LLMEnsemble: decisions a second of the batch loop, by scripts."""

from __future__ import annotations

from measurement import Measurement, ReportProgress, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark

IDS = {"palaestra/LLMEnsemble-v0": "agent", "palaestra/LLMEnsemble-Multi-v0": "expert"}
"""Team by id."""
LANES, BAR = 1024, 300e3
"""Matches side by side, and decisions a second of one core."""


def decisions(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions a second; all agents of a match decide at once, which counts as one decision."""
    plays = {id: oracle_play(id, team) for id, team in IDS.items()}
    timings = zip(plays, timed(*plays.values()), strict=True)
    return [
        Measurement("", f"{id.removeprefix('palaestra/')}, batch of {LANES}: decisions a second", 1e9 / t.ns, BAR, True)
        for id, t in timings
    ]


def oracle_play(id: str, team: str) -> Benchmark:
    """The batch loop, the oracle as the player."""
    sim = registry.make_batch(id, LANES, opponents={team: "oracle"}, autoreset_mode="same_step")
    sim.reset(seed=0)
    return Benchmark(id, sim.step, LANES, sim.close)
