"""The library of `tests.flights.build` from Python."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np

from cbo_suite.problems.lunar_lander.flight import INITIAL_RANDOM, MAX_STEPS, simulator
from cbo_suite.protocols import Array
from tests.flights.build import LIBRARY


class Flights:
    """Flights of the lunar lander by a library; one thread at a time flies, the others wait."""

    def __init__(self, folder: Path) -> None:
        """Load the library from the folder that it was built in."""
        self._library = ctypes.CDLL(str(folder.resolve() / LIBRARY))
        self._library.fly_all.argtypes = (
            [ctypes.c_void_p] * 2 + [ctypes.c_long] * 2 + [ctypes.c_void_p]
        )
        self._lock = Lock()

    def rewards(self, points: Array, terrains: int) -> Array:
        """Return the reward of every point on every terrain.

        Args:
            points: Weights of controllers, shape `(n, 12)`.
            terrains: Their number m.

        Returns:
            Rewards, shape `(n, m)`.
        """
        x = np.ascontiguousarray(points, dtype=float)
        ground = all_terrains(terrains)
        assert ground.shape[1] * ground.itemsize == self._library.terrain_bytes()
        assert x.shape[1:] == (12,)
        rewards = np.empty((len(x), terrains))
        with self._lock:
            self._library.fly_all(
                x.ctypes.data, ground.ctypes.data, len(x), terrains, rewards.ctypes.data
            )
        return rewards


@cache
def all_terrains(number: int) -> Array:
    """Draw what the seeds of the first terrains fix, as `struct Terrain` has it, row by row."""
    return np.ascontiguousarray([make_terrain(seed) for seed in range(number)])


def make_terrain(seed: int) -> Array:
    """Draw ground, initial force and noise in the order in which the simulator draws them."""
    from gymnasium.utils.seeding import np_random

    module = simulator()
    width, height = module.VIEWPORT_W / module.SCALE, module.VIEWPORT_H / module.SCALE
    generator, _ = np_random(seed)
    chunks = 11
    heights = generator.uniform(0, height / 2, size=chunks + 1)
    middle = chunks // 2
    heights[middle - 2 : middle + 3] = height / 4  # the pad
    x = [width / (chunks - 1) * i for i in range(chunks)]
    y = [0.33 * (heights[i - 1] + heights[i] + heights[i + 1]) for i in range(chunks)]
    force = [generator.uniform(-INITIAL_RANDOM, INITIAL_RANDOM) for _ in range(2)]
    generator.uniform(-1.0, 1.0, size=2)  # of the step inside reset, in which no engine fires
    noise = generator.uniform(-1.0, 1.0, size=(MAX_STEPS, 2)) / module.SCALE
    return np.concatenate([np.column_stack([x, y]).ravel(), force, noise.ravel()])
