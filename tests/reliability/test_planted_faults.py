"""The planted faults fit the code that they break; whether they are caught, `planted_faults.py` shows."""

from __future__ import annotations

import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("mujoco")

from reliability.planted_faults import SOURCES, changed_source
from testing.planting import FAULTS


@pytest.mark.parametrize("game", SOURCES)
def test_rules_that_are_broken_stand_once_in_their_file(game: str):
    for fault in FAULTS:
        if fault.changes and fault.game == game:
            compile(changed_source(game, fault.changes), fault.about, "exec")


def test_what_is_broken_in_the_suite_is_there():
    for fault in FAULTS:
        for owner, name, _ in fault.patches() if fault.patches else ():
            assert hasattr(owner, name) or name.startswith("__"), fault.about


def test_a_rule_that_has_moved_is_named():
    with pytest.raises(ValueError, match=r"'no such line' stands 0 times in .*pong.py"):
        changed_source("Pong", (("no such line", ""),))
