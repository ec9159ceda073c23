"""How the compiler is called."""

from __future__ import annotations

import gc
from typing import ClassVar

import pytest
from games import duel

from palaestra.core.compile import batch_loop
from palaestra.core.compile.linker import jit_disabled, link


@pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("error", [None, ValueError("no type")])
def test_no_garbage_is_collected_while_a_driver_is_compiled(
    enabled: bool, error: Exception | None, monkeypatch: pytest.MonkeyPatch
):
    seen = []

    class Driver:
        overloads: ClassVar = {(): type("Overload", (), {"entry_point": len})}

        def __call__(self) -> None:
            seen.append(gc.isenabled())
            if error is not None:
                raise error

    kernel, name = link(duel.game()), f"driver of this test, {enabled}, {error}"
    monkeypatch.setitem(kernel.drivers, name, Driver())
    monkeypatch.setattr(batch_loop, name, lambda: None, raising=False)
    (gc.enable if enabled else gc.disable)()
    try:
        if error is not None:
            with pytest.raises(ValueError, match="no type"):
                kernel.bind(name)
        else:
            assert kernel.bind(name) is len
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
    assert seen == [False]
