"""One landing: gymnasium's LunarLander-v3, flown by the controller with twelve weights.

The controller of [TuRBO] generalises the heuristic that ships with the simulator. With the
state s_0, ..., s_7 = x, y, their velocities, angle, angular velocity and the two leg contacts:

    target angle  a = clip(w_0 s_0 + w_1 s_2, -w_2, w_2),   target height  h = w_3 |s_0|,
    A = (a - s_4) w_4 - s_5 w_5,   H = (h - s_1) w_6 - s_3 w_7,
    and, as soon as a leg touches the ground, A = w_8 and H = -s_3 w_9.
    Fire the main engine (2) if H > |A| and H > w_10, else the right one (3) if A < -w_11,
    else the left one (1) if A > w_11, else none (0).

A flight that only needs its reward goes round the simulator's own `step`, which looks up, checks
and wraps much that never changes within a flight. Ground, craft, noise of the engines and physics
are the simulator's, and the reward has the bits of `step` (a test compares them) in three quarters
of its time; most of what is left is spent in Box2D.

References:
    [TuRBO] Eriksson, Pearce, Gardner, Turner, Poloczek: Scalable global optimization via local
        Bayesian optimization. NeurIPS 2019. Controller and initial force: readme of its code.
"""

from __future__ import annotations

import contextlib
import io
import math
import threading
import warnings
from array import array
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
FUEL = (0.0, 0.03, 0.30, 0.03)  # what a step of each action costs, fixed by gymnasium

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
    module, environment = simulator(), _kept.environment
    state, _ = environment.reset(seed=terrain)
    state = state.tolist()
    lander, (left, right) = environment.lander, environment.legs
    scale, rate = module.SCALE, module.FPS
    half_width, half_height = module.VIEWPORT_W / scale / 2, module.VIEWPORT_H / scale / 2
    ground = environment.helipad_y + module.LEG_DOWN / scale
    # One draw of all numbers is the same stream as two of them at every step.
    noise = environment.np_random.uniform(-1.0, 1.0, size=(MAX_STEPS, 2)) / scale
    position, shaping, reward = lander.position, environment.prev_shaping, 0.0
    for disturbance in noise.tolist():
        engine = _action(weights, state)
        if engine:
            impulse, place = _thrust(module, engine, position, lander.angle, *disturbance)
            lander.ApplyLinearImpulse(impulse, place, True)
        environment.world.Step(1.0 / rate, 6 * 30, 2 * 30)
        position, velocity = lander.position, lander.linearVelocity
        state = [
            (position.x - half_width) / half_width,
            (position.y - ground) / half_height,
            velocity.x * half_width / rate,
            velocity.y * half_height / rate,
            lander.angle,
            20.0 * lander.angularVelocity / rate,
            1.0 if left.ground_contact else 0.0,
            1.0 if right.ground_contact else 0.0,
        ]
        if not lander.awake:
            return reward + 100.0
        if environment.game_over or abs(state[0]) >= 1.0:
            return reward - 100.0
        before, shaping = shaping, _shaping(state)
        reward += shaping - before - FUEL[engine]
        # The simulator hands out its state in single precision.
        state = array("f", state).tolist()
    return reward


def _thrust(
    module: ModuleType, engine: int, position: Any, angle: float, ahead: float, aside: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the impulse of an engine and the place where it acts, both disturbed by noise.

    Sums are in the simulator's order, because another one rounds differently. The number 17, where
    one would expect `SIDE_ENGINE_HEIGHT`, is the simulator's too.
    """
    scale = module.SCALE
    sine, cosine = math.sin(angle), math.cos(angle)
    if engine == 2:
        power, ahead = module.MAIN_ENGINE_POWER, module.MAIN_ENGINE_Y_LOCATION / scale + 2 * ahead
    else:
        power = module.SIDE_ENGINE_POWER
        aside = 3 * aside + (engine - 2) * module.SIDE_ENGINE_AWAY / scale
    x, y = sine * ahead - cosine * aside, -cosine * ahead - sine * aside
    place = position.x + x, position.y + y
    if engine != 2:
        height = module.SIDE_ENGINE_HEIGHT
        place = place[0] - sine * 17 / scale, place[1] + cosine * height / scale
    return (-x * power, -y * power), place


def _shaping(state: Sequence[float]) -> float:
    """Return the part of the reward that the state has by itself; a step gains its change."""
    x, y, speed_x, speed_y, angle, _, left_leg, right_leg = state
    distance, speed = math.sqrt(x * x + y * y), math.sqrt(speed_x * speed_x + speed_y * speed_y)
    return -100 * distance - 100 * speed - 100 * abs(angle) + 10 * left_leg + 10 * right_leg


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
