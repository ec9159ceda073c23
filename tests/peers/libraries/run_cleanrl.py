"""CleanRL: its scripts, unchanged, with ``--env-id palaestra:palaestra/...``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from peers.libraries.more_ids import JOINT, MODULE
from peers.libraries.trials import main, run_program, trial

SOURCE = Path(os.environ.get("PALAESTRA_PEER_SOURCE", ".")).resolve()
ON_POLICY = ("--num-envs", "2", "--num-steps", "50", "--total-timesteps", "200", "--num-minibatches", "2")
OFF_POLICY = ("--learning-starts", "150", "--total-timesteps", "200", "--buffer-size", "1000", "--batch-size", "32")
OLD_GYMNASIUM = "CleanRL wants gymnasium 0.29"


def run(script: str, id: str, *arguments: str) -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:  # the scripts write ./runs
        program = [sys.executable, SOURCE / "cleanrl" / f"{script}.py", "--env-id", id, "--no-cuda", *arguments]
        run_program(program, Path(folder))


@trial("box", "sac_continuous_action.py, td3_continuous_action.py on UcavTrack")
def _() -> None:
    for script in ("sac_continuous_action", "td3_continuous_action"):
        run(script, "palaestra:palaestra/UcavTrack-v3", *OFF_POLICY)


@trial("box", "ppo_continuous_action.py, written for gymnasium 0.29", limit="TransformObservation")
def _() -> None:
    run("ppo_continuous_action", "palaestra:palaestra/UcavTrack-v3", *ON_POLICY)


@trial("opponent", "ppo.py, pqn.py on GridSoccer")
def _() -> None:
    for script in ("ppo", "pqn"):
        run(script, "palaestra:palaestra/GridSoccer-v0", *ON_POLICY)


@trial("opponent", "dqn.py on GridSoccer, written for gymnasium 0.29", limit="final_observation")
def _() -> None:
    run("dqn", "palaestra:palaestra/GridSoccer-v0", *OFF_POLICY[:-2])


@trial("choices", 'ppo.py, pqn.py on a team of TeamPong registered with choices="discrete"')
def _() -> None:
    for script in ("ppo", "pqn"):
        run(script, f"{MODULE}:{JOINT}", *ON_POLICY)


@trial("choices", "ppo.py on MultiDiscrete", limit="only discrete action space is supported")
def _() -> None:
    run("ppo", "palaestra:palaestra/TeamPong-v0", *ON_POLICY)


if __name__ == "__main__":
    main("torch")
