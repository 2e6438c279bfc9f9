"""The flights of campaigns: their terrains are the simulator's, and so are their rewards."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cbo_suite.problems.lunar_lander.flight import fly, simulator
from tests.flights.build import LIBRARY
from tests.flights.campaign import environment
from tests.flights.check import draw_points
from tests.flights.library import Flights, make_terrain

# Importing Box2D to see whether it is there would turn its warnings into errors, and crash.
if find_spec("Box2D") is None:
    pytest.skip("needs the extra lunar", allow_module_level=True)

BUILT = Path(__file__).parents[2] / "build" / "flights"
built = pytest.mark.skipif(
    not (BUILT / LIBRARY).exists(), reason="the library is not built: `make flights` builds it"
)


@pytest.mark.parametrize("seed", [0, 7, 49])
def test_a_terrain_is_what_the_simulator_draws(seed: int) -> None:
    """Its corners, and the noise of the engines that is drawn after its reset."""
    module = simulator()
    environment = module.LunarLander()
    environment.reset(seed=seed)
    terrain = make_terrain(seed)
    first, *_ = environment.sky_polys
    corners = [first[0], *(polygon[1] for polygon in environment.sky_polys)]
    assert terrain[:22].reshape(11, 2).tolist() == np.array(corners).tolist()
    noise = environment.np_random.uniform(-1.0, 1.0, size=2000) / module.SCALE
    assert terrain[24:].tolist() == noise.tolist()


@built
def test_rewards_have_the_bits_of_the_simulator() -> None:
    """Of points that crash and points that land, more than fly at once."""
    points = draw_points(10, seed=5)
    expected = [[fly(x, terrain) for terrain in range(12)] for x in points.tolist()]
    assert Flights(BUILT).rewards(points, 12).tolist() == expected


@built
def test_processes_of_a_campaign_fly_by_the_library() -> None:
    """What takes the place of the simulator's flights gives the value that is known."""
    script = (
        "import cbo_suite as cbo\n"
        "from cbo_suite.problems import lunar_lander\n"
        "problem = cbo.make_problem('lunar-lander-m10-v1')\n"
        "known = problem.best_known\n"
        "print(problem.evaluate(known.x[None]).objective[0] == known.objective)\n"
        "print(lunar_lander.fly_all.__module__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(BUILT),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "sitecustomize"]
