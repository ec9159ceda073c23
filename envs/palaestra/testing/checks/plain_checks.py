"""The rules as plain Python: the first check, before anything is compiled."""

from __future__ import annotations

from palaestra.core.compile.diagnosis import RuleError, explain_exception
from palaestra.core.compile.linker import hooks_of
from palaestra.core.run.dry_run import dry_run
from palaestra.testing.harness import FIRST, CheckError, conformance
from palaestra.testing.subject import Level, Subject

DECISIONS: dict[Level, int] = {"preset": 0, "fast": 300, "full": 3000}
CPU_S: dict[Level, float] = {"preset": 0.0, "fast": 0.1, "full": 10.0}


@conformance(order=FIRST)
def rules_run_as_plain_python(subject: Subject) -> None:
    """Rules run as plain Python, where every index is checked.

    Compiled rules that use an index outside an array overwrite other memory: results of another lane, or the
    interpreter. So where this check fails, no other is run.
    """
    game = subject.game
    decisions = DECISIONS[subject.level]
    error = dry_run(game, lambda lanes: subject.batch(lanes, compiled=False), decisions, CPU_S[subject.level])
    if error is None:
        return
    wrong = error if isinstance(error, RuleError) else explain_exception(game, hooks_of(game), error)
    if wrong is None:
        raise error
    raise CheckError(str(wrong)) from error
