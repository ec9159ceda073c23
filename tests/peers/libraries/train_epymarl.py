"""EPyMARL: its programs, unchanged; ids with Tuple spaces from `palaestra.adapters.epymarl` through its ``gymma``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from peers.libraries.trials import main, run_program, trial

SOURCE = Path(os.environ.get("PALAESTRA_PEER_SOURCE", ".")).resolve()
MODULE = "palaestra.adapters.epymarl"
SMALL = ("test_nepisode=2", "batch_size=2", "buffer_size=10", "hidden_dim=16", "use_cuda=False")


def run(method: str, id: str, time_limit: int, *settings: str) -> None:
    program = [sys.executable, SOURCE / "src" / "main.py", "--force", f"--config={method}", "--env-config=gymma"]
    game = (f"env_args.key={MODULE}:{id}", f"env_args.time_limit={time_limit}")
    with tempfile.TemporaryDirectory() as folder:
        said = run_program([*program, "with", *game, "t_max=200", *SMALL, *settings], Path(folder))
    assert "Finished Training" in said


@trial("opponent", "QMIX, VDN on TeamPong against a chosen script")
def _() -> None:
    for method in ("qmix", "vdn"):
        run(method, "palaestra/TeamPong-tuple-v0", 500, "env_args.opponent=chaser")


@trial("opponent", "MAPPO on TeamTag")
def _() -> None:
    run("mappo", "palaestra/TeamTag-tuple-v0", 50, "batch_size_run=2")


@trial("choices", "QMIX on composite choices (Arena) and unlike roles (SpeakerListener)")
def _() -> None:
    run("qmix", "palaestra/ArenaDuel2v2-tuple-v0", 50)
    run("qmix", "palaestra/SpeakerListener-tuple-v0", 25)


if __name__ == "__main__":
    main("torch")
