"""Random and Sobol search: where the sequence goes on."""

import numpy as np
import pytest

from cbo_suite.optimizers.random_search import SobolSearch
from cbo_suite.protocols import Space

SPACE = Space(np.zeros(3), np.ones(3), 1)


@pytest.mark.parametrize("asked", [0, 1, 7])
def test_a_state_is_a_place_in_the_sequence(asked: int) -> None:
    """Also the place before the first point, where a run may have been interrupted."""
    whole, resumed = (SobolSearch(SPACE, budget=20, seed=4) for _ in range(2))
    if asked:
        whole.ask(asked)
    resumed.set_state(whole.get_state())
    assert np.array_equal(whole.ask(3), resumed.ask(3))
