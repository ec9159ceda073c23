"""Beyond one machine: evaluations, tournaments and sampling on Ray (extra ``ray``).

* `palaestra.scale.by_ray`: `evaluate` and `tournament`, with the tables of one process;
* `palaestra.scale.sampler`: `sample`, batches of transitions for a learner;
* `palaestra.scale.pieces`: how matches are divided, and what plays them;
* `palaestra.scale.tasks`, `cluster`: work that outlives dead processes, and Ray.
"""

from palaestra.scale.by_ray import evaluate, tournament
from palaestra.scale.pieces import WorkerRefused
from palaestra.scale.sampler import Batch, sample

__all__ = ["Batch", "WorkerRefused", "evaluate", "sample", "tournament"]
