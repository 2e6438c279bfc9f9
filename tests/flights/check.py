"""Compare the flights of a library with those of the simulator, bit by bit.

    python -m tests.flights.check FOLDER [NUMBER] [SEED]

Half of the points are uniform, half lie around good landings, whose flights are longer and touch
the ground; each flies on 50 terrains. Says how many of the rewards are equal, and fails unless all
are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import numpy as np

from cbo_suite.problems.lunar_lander import HEURISTIC
from cbo_suite.problems.lunar_lander.flight import fly
from cbo_suite.protocols import Array
from tests.flights.library import Flights

TERRAINS = 50


def draw_points(number: int, seed: int) -> Array:
    """Draw points all over the box and around the heuristic of the simulator."""
    generator = np.random.default_rng(seed)
    spread = generator.uniform(0.0, 2.0, (number // 2, 12))
    near = HEURISTIC + 0.2 * generator.standard_normal((number - number // 2, 12))
    return np.concatenate([spread, np.clip(near, 0.0, 2.0)])


def main(folder: Path, number: int = 100, seed: int = 0) -> None:
    """Compare a number of points."""
    flights, points = Flights(folder), draw_points(number, seed)
    flights.rewards(points[:1], TERRAINS)
    begin = process_time()
    made = flights.rewards(points, TERRAINS)
    middle = process_time()
    expected = np.array([[fly(x, terrain) for terrain in range(TERRAINS)] for x in points.tolist()])
    fast, slow = (
        1e3 * seconds / made.size for seconds in (middle - begin, process_time() - middle)
    )
    equal = int((made == expected).sum())
    print(f"{equal} of {made.size} rewards are equal; {fast:.2f} ms a flight, simulator {slow:.2f}")
    sys.exit(equal != made.size)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
