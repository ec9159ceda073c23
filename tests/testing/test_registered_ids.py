"""Every registered environment keeps every promise."""

import warnings

import pytest

from palaestra import registry
from palaestra.testing import check

OURS = [id for id in registry.ROWS if id.startswith("palaestra/")]


@pytest.mark.parametrize("id", OURS)
def test_an_id_passes_the_conformance_kit(id: str):
    try:
        report = check(id)
    except ImportError as error:
        pytest.skip(str(error))
    assert report.passed, str(report)


@pytest.mark.parametrize("id", OURS)
def test_an_id_makes_no_warning(id: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            sim = registry.make_batch(id, 2)
        except ImportError as error:
            pytest.skip(str(error))
        sim.reset(seed=0)
        sim.close()
