"""Speed of SeqWM: planned decisions a second and milliseconds of a gradient step, on one core."""

from __future__ import annotations

from typing import Any

import numpy as np

from measurement import Measurement, NotHere, ReportProgress, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark

ID, TEAM, LANES = "palaestra/QuadPushBox-v0", "robot", 64
LARGER: dict[str, Any] = {
    **{"latent": 64, "encoder": (128,), "models": 128, "hidden": (128, 128)},
    **{"samples": 32, "actor_samples": 8, "iterations": 2, "horizon": 2, "batch_size": 256, "value_steps": 1},
}
SIZES: dict[str, tuple[dict[str, Any], float, float]] = {
    "latent 64": (LARGER, 500.0, 40.0),
    "small": ({}, 1200.0, 15.0),
}
"""Arguments, least planned decisions a second, most milliseconds of a gradient step."""
BAR = SIZES["small"][1]


def planning(report_progress: ReportProgress) -> list[Measurement]:
    """Both, of a planner for two quadrupeds, by the thread's CPU time."""
    try:
        import torch

        from palaestra_baselines.seqwm import Args
    except ImportError as error:
        raise NotHere(f"the baselines are not installed ({error})") from error
    torch.set_num_threads(1)
    found = []
    for name, (arguments, least, most_ms) in SIZES.items():
        plan, update = timed(*benchmarks(Args(team=TEAM, **arguments)))
        found += [
            Measurement("", f"SeqWM, {name}: planned decisions a second, {LANES} lanes", 1e9 / plan.ns, least, True),
            Measurement("", f"SeqWM, {name}: a gradient step, ms", update.ns / 1e6, most_ms, False),
        ]
    return found


def benchmarks(args: Any) -> tuple[Benchmark, Benchmark]:
    """A plan in all lanes, and a gradient step on random sequences, of a `palaestra_baselines.seqwm.Args`."""
    import torch

    from palaestra_baselines.common.agents import Roster
    from palaestra_baselines.common.planning import decide, draws_size
    from palaestra_baselines.common.rollout import Position, Sequences
    from palaestra_baselines.seqwm import Learner

    torch.manual_seed(0)
    game, _ = registry.make_game(ID)
    roster = Roster(game, [TEAM], numbers=True)
    learner, rng = Learner(args, roster), np.random.default_rng(0)
    agents, numbers, size = roster.agents, roster.actions, roster.sizes[TEAM]
    normals = torch.randn(LANES, draws_size(args.design, agents, numbers))
    seen, before = {TEAM: torch.randn(LANES, agents, size)}, torch.zeros(LANES, agents, args.horizon * numbers)
    length, rows = args.horizon + args.value_steps - 1, args.batch_size
    one = torch.ones(length, rows)
    positions = Position({TEAM: torch.randn(length + 1, rows, agents, size)}, None, None, None, None)
    actions, rewards = torch.rand(length, rows, agents, numbers) * 2.0 - 1.0, 0.1 * torch.randn(length, rows, 1)
    batch = Sequences(positions, torch.ones(()), actions, rewards, one, one)
    return (
        Benchmark("plan", lambda: decide(learner.model, seen, before, normals, explore=True), LANES),
        Benchmark("update", lambda: learner.update(batch, 0, 5e-4, rng)),
    )
