"""Put the flights of a library in the place of the simulator's, see `tests.flights.campaign`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

PROBLEM = "cbo_suite.problems.lunar_lander"


class Finder(MetaPathFinder):
    """Finds the lunar lander as Python does, and changes it after it has run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's own specification with a loader that also replaces its flights."""
        spec = PathFinder.find_spec(name, path) if name == PROBLEM else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_replace(module: ModuleType) -> None:
            execute(module)
            assert module.fly_all
            module.fly_all = fly_all  # type: ignore[attr-defined]

        spec.loader.exec_module = execute_and_replace  # type: ignore[method-assign]
        return spec


def fly_all(
    flights: Sequence[tuple[Sequence[float], int]], workers: int | None = None
) -> list[float]:
    """Return the rewards of flights of every point on every terrain, the terrains side by side."""
    import numpy as np

    terrains = max(terrain for _, terrain in flights) + 1
    assert [terrain for _, terrain in flights] == list(range(terrains)) * (len(flights) // terrains)
    points = np.array([weights for weights, _ in flights[::terrains]])
    rewards: list[float] = _library().rewards(points, terrains).ravel().tolist()
    return rewards


@cache
def _library() -> Any:
    """Load the library once; what it needs is not imported when Python starts."""
    from tests.flights.library import Flights

    return Flights(Path(os.environ["CBO_FLIGHTS"]))


sys.meta_path.insert(0, Finder())
