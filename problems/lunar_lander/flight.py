"""One landing: gymnasium's LunarLander-v3, flown by the controller with twelve weights.

The controller of [TuRBO] generalises the heuristic that ships with the simulator. With the
state s_0, ..., s_7 = x, y, their velocities, angle, angular velocity and the two leg contacts:

    target angle  a = clip(w_0 s_0 + w_1 s_2, -w_2, w_2),   target height  h = w_3 |s_0|,
    A = (a - s_4) w_4 - s_5 w_5,   H = (h - s_1) w_6 - s_3 w_7,
    and, as soon as a leg touches the ground, A = w_8 and H = -s_3 w_9.
    Fire the main engine (2) if H > |A| and H > w_10, else the right one (3) if A < -w_11,
    else the left one (1) if A > w_11, else none (0).

References:
    [TuRBO] Eriksson, Pearce, Gardner, Turner, Poloczek: Scalable global optimization via local
        Bayesian optimization. NeurIPS 2019. Controller and initial force: readme of its code.
"""

from __future__ import annotations

import contextlib
import io
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbo_suite.errors import MissingExtra

INITIAL_RANDOM = 1500.0  # [TuRBO]; gymnasium has 1000
MAX_STEPS = 1000  # the limit that gymnasium registers for LunarLander-v3
STEPS_PER_SECOND = 50  # of simulated time, fixed by gymnasium

_kept = threading.local()


class Frame(NamedTuple):
    """A picture of a flight.

    Attributes:
        seconds: Simulated time since the start.
        reward: Reward collected until then.
        image: Colours, shape `(400, 600, 3)`.
    """

    seconds: float
    reward: float
    image: NDArray[np.uint8]


@cache
def simulator() -> ModuleType:
    """Return a copy of gymnasium's module that is ours alone, with the stronger initial force.

    The force is a constant of that module; setting it in a copy leaves the user's own gymnasium as
    it is, whatever other threads do with it. The file is loaded by itself because its package also
    imports environments that are of no use here.

    Raises:
        MissingExtra: gymnasium or Box2D is not installed.
    """
    try:
        with warnings.catch_warnings():
            # Box2D's bindings warn on Python 3.12 and later; as an error it crashes Python.
            warnings.simplefilter("ignore", DeprecationWarning)
            import Box2D  # noqa: F401
            import gymnasium
    except ImportError as error:
        raise MissingExtra(
            'the lunar lander needs gymnasium and Box2D: pip install "cbo-suite[lunar]"'
        ) from error
    file = Path(gymnasium.__file__).parent / "envs" / "box2d" / "lunar_lander.py"
    specification = spec_from_file_location("cbo_suite_lunar_simulator", file)
    if specification is None or specification.loader is None:
        raise MissingExtra(f'no simulator in {file}: pip install "cbo-suite[lunar]"')
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    module.INITIAL_RANDOM = INITIAL_RANDOM  # type: ignore[attr-defined]
    return module


def fly(weights: Sequence[float], terrain: int) -> float:
    """Return the reward of one flight: the sum over its steps, after the one inside reset."""
    if not hasattr(_kept, "environment"):
        _kept.environment = simulator().LunarLander()
    (reward,) = deque(_steps(_kept.environment, weights, terrain), maxlen=1)
    return reward


def film(weights: Sequence[float], terrain: int, every: int) -> list[Frame]:
    """Return pictures of a flight: of the first, then of every `every` steps, and of the last."""
    # pygame greets on import, which is not what the caller wants to print.
    with contextlib.redirect_stdout(io.StringIO()):
        environment = simulator().LunarLander(render_mode="rgb_array")
        import pygame  # noqa: F401
    # Every step is drawn, as it is drawing that makes the exhaust of the engines fade.
    frames = [
        Frame(step / STEPS_PER_SECOND, reward, environment.render())
        for step, reward in enumerate(_steps(environment, weights, terrain), start=1)
    ]
    return [*frames[:-1:every], frames[-1]]


def _steps(environment: Any, weights: Sequence[float], terrain: int) -> Iterator[float]:
    """Fly on a terrain and yield the reward collected so far after every step."""
    state, _ = environment.reset(seed=terrain)
    reward = 0.0
    for _ in range(MAX_STEPS):
        state, gain, terminated, _, _ = environment.step(_action(weights, state.tolist()))
        reward += float(gain)
        yield reward
        if terminated:
            return


def _action(weights: Sequence[float], state: Sequence[float]) -> int:
    """Return the controller's action; plain floats, as arrays of this size would be slower."""
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11 = weights
    x, y, speed_x, speed_y, angle, spin, left_leg, right_leg = state
    if left_leg or right_leg:
        turn, lift = w8, -speed_y * w9
    else:
        target = min(max(w0 * x + w1 * speed_x, -w2), w2)
        turn = (target - angle) * w4 - spin * w5
        lift = (w3 * abs(x) - y) * w6 - speed_y * w7
    if lift > abs(turn) and lift > w10:
        return 2
    if turn < -w11:
        return 3
    return 1 if turn > w11 else 0
