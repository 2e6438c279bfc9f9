"""The synthetic vehicle: 124 variables, 68 constraints, at the scale of a body-in-white study.

The problem is this suite's own. It is made to be as demanding as an industrial mass optimization
with crash, stiffness and vibration surrogates (the model is Jones, "Large-scale multi-disciplinary
mass optimization in the auto industry", MOPTA 2008 conference), and it ships with the package.
It is another problem than MOPTA08 and no value of the one says anything about the other.

Minimise the mass of a vehicle body over x in [0, 1]^124 (gauges and shapes, scaled),

    f(x) = base + sum_i w_i x_i,

where 68 performance responses stay within their limits,

    c_j(x) = s_j (o_j + sum_t a_jt x_v(j,t) + sum_k h_jk / (1 + r_jk(x)^2 / l_j)^2) <= 0,
    r_jk(x)^2 = sum_p (x_u(j,k,p) - z_jkp)^2:

a linear trend over 24 variables plus 10 radial bumps over 12 of these each: the form of a kriging
model with a rational quadratic kernel. The 68 responses belong to 8 load cases, and a load case
acts on a zone of 44 neighbouring variables, so responses share parts and conflict.

Only additions, multiplications, divisions and comparisons occur, in a fixed order, in the formula
and in the generator of its coefficients: values are the same to the last bit on every machine with
IEEE-754 arithmetic, and for every batch size.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbo_suite.errors import EvaluationFailed
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

DIM = 124
NUM_CONSTRAINTS = 68
LOAD_CASES = 8
ZONE = 44  # variables within reach of one load case
TREND = 24  # variables in the trend of one response
BUMPS = 10  # bumps of one response
RADIUS = 12  # variables in the radius of one bump

# Rows evaluated at a time: the terms of a block (8 160 numbers a row) then stay in the cache.
BLOCK = 32

# SHA-256 over the coefficients in the order of their fields, as little-endian bytes.
DIGEST = "2b01a2974b8a4ee01bb80f6e80921f98dc7fcfc9931bcb79e3a04f7bde47d390"


class Coefficients(NamedTuple):
    """The numbers that make the problem; symbols as in the module's formula.

    Attributes:
        base: Mass of all that is not varied, shape `()`.
        mass: Mass w of a full unit of each variable, shape `(124,)`; 0 for a shape.
        scale: Magnitude s of each response, a power of two, shape `(68,)`.
        offset: Level o of each response, shape `(68,)`.
        trend_variable: Variables v of the trends, shape `(24, 68)`.
        slope: Slopes a of the trends, shape `(24, 68)`.
        bump_variable: Variables u of the bumps, shape `(12, 10, 68)`.
        center: Centres z of the bumps, shape `(12, 10, 68)`.
        height: Heights h of the bumps, shape `(10, 68)`.
        length: Squared length l of the bumps of each response, shape `(68,)`.
        witness: A strictly feasible design, shape `(124,)`.
    """

    base: Array
    mass: Array
    scale: Array
    offset: Array
    trend_variable: NDArray[np.int64]
    slope: Array
    bump_variable: NDArray[np.int64]
    center: Array
    height: Array
    length: Array
    witness: Array

    def digest(self) -> str:
        """Return the SHA-256 over all fields, little-endian."""
        digest = hashlib.sha256()
        for field in self:
            digest.update(field.astype(field.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()


class _Stream:
    """Uniform numbers from the raw output of PCG64, whose stream NumPy promises not to change."""

    def __init__(self, seed: int) -> None:
        """Start the stream of a seed."""
        self._bits = np.random.PCG64(seed)

    def uniform(self, *shape: int) -> Array:
        """Draw doubles from [0, 1) in steps of 2^-53, in C order."""
        raw = self._bits.random_raw(int(np.prod(shape)))
        return (raw >> np.uint64(11)).astype(float).reshape(shape) * 2.0**-53

    def between(self, low: float, high: float, *shape: int) -> Array:
        """Draw doubles from [low, high)."""
        return low + (high - low) * self.uniform(*shape)

    def subsets(self, size: int, *shape: int) -> NDArray[np.int64]:
        """Draw subsets of `size` positions out of the first axis of `shape`."""
        order = np.argsort(self.uniform(*shape), axis=0, kind="stable")
        return order[:size].astype(np.int64)


def generate(seed: int = 124068) -> Coefficients:
    """Generate the coefficients, version 1 of the generator.

    Some variables carry the loads: the witness sets them high and the others low, and raising
    them lowers most responses. Every other influence is of either sign. The offsets
    leave the witness a margin in every response, small in some and large in others.
    """
    stream = _Stream(seed)
    is_shape = stream.uniform(DIM) < 1 / 6
    mass = np.where(is_shape, 0.0, stream.between(0.8, 2.4, DIM) * stream.between(0.5, 2.0, DIM))
    carries = stream.uniform(DIM) < 0.35
    witness = np.where(carries, 0.6, 0.1) + 0.35 * stream.uniform(DIM)

    load_case = np.arange(NUM_CONSTRAINTS) * LOAD_CASES // NUM_CONSTRAINTS
    zone = (np.arange(ZONE)[:, None] + load_case * DIM // LOAD_CASES) % DIM
    trend_variable = np.take_along_axis(
        zone, stream.subsets(TREND, ZONE, NUM_CONSTRAINTS), axis=0
    ).astype(np.int64)
    strength = stream.uniform(TREND, NUM_CONSTRAINTS)
    strength = strength * strength
    support = np.where(
        carries[trend_variable], stream.between(0.2, 1.0, TREND, NUM_CONSTRAINTS), 0.0
    )
    slope = strength * (stream.between(-1.0, 1.0, TREND, NUM_CONSTRAINTS) - support)

    bump_variable = np.take_along_axis(
        trend_variable[:, None, :], stream.subsets(RADIUS, TREND, BUMPS, NUM_CONSTRAINTS), axis=0
    )
    center = stream.uniform(RADIUS, BUMPS, NUM_CONSTRAINTS)
    roughness = stream.between(1.0, 9.0, NUM_CONSTRAINTS)
    height = roughness * stream.between(-1.0, 1.0, BUMPS, NUM_CONSTRAINTS)
    length = stream.between(1.0, 3.0, NUM_CONSTRAINTS)

    ease = stream.uniform(NUM_CONSTRAINTS)
    margin = 0.1 + 3.9 * ease * ease
    exponent = np.floor(stream.between(-3.0, 4.0, NUM_CONSTRAINTS)).astype(np.int64)
    coefficients = Coefficients(
        base=np.array(120.0),
        mass=mass,
        scale=np.ldexp(1.0, exponent),
        offset=np.zeros(NUM_CONSTRAINTS),
        trend_variable=trend_variable,
        slope=slope,
        bump_variable=bump_variable,
        center=center,
        height=height,
        length=length,
        witness=witness,
    )
    level = _response(coefficients, witness[:, None])[:, 0]
    return coefficients._replace(offset=-(level + margin))


def _ordered_sum(terms: Array) -> Array:
    """Sum over the first axis from first to last.

    `np.sum` groups its additions by the layout of the array, hence by the number of points.
    """
    total: Array = terms[0].copy()
    for term in terms[1:]:
        total += term
    return total


def _response(coefficients: Coefficients, x: Array) -> Array:
    """Return the responses before scaling, shape `(68, n)`, at points of shape `(124, n)`."""
    trend = x.take(coefficients.trend_variable, axis=0)
    trend *= coefficients.slope[..., None]
    distance = x.take(coefficients.bump_variable, axis=0)
    distance -= coefficients.center[..., None]
    distance *= distance
    width = _ordered_sum(distance)
    width /= coefficients.length[:, None]
    width += 1.0
    width *= width
    bumps = _ordered_sum(coefficients.height[..., None] / width)
    return coefficients.offset[:, None] + _ordered_sum(trend) + bumps


class Vehicle(Problem):
    """Synthetic vehicle body: mass under 68 responses in 124 variables.

    The centre violates 23 responses and no uniform random point is known to be feasible. At the
    best known design about a third of the responses are at their limits.

    Attributes:
        coefficients: The numbers of the formula.
        witness: A strictly feasible design, shape `(124,)`, heavier than the best known one.

    Version history:
        v1: First version, generator of seed 124068.
    """

    def __init__(self) -> None:
        """Generate the coefficients and check them against their digest."""
        self.id = "vehicle-124d-v1"
        self.space = Space(np.zeros(DIM), np.ones(DIM), NUM_CONSTRAINTS)
        self.coefficients = generate()
        if (digest := self.coefficients.digest()) != DIGEST:
            raise EvaluationFailed(
                f"the coefficients of {self.id} have digest {digest}, not {DIGEST}: this NumPy "
                "does not reproduce the problem, please report it with your versions"
            )
        self.witness = self.coefficients.witness
        known = json.loads(
            Path(__file__).with_name("vehicle_best_known.json").read_text(encoding="utf-8")
        )
        self.best_known = BestKnown(
            known[self.id]["objective"],
            np.array(known[self.id]["x"]),
            "tests/golden/derive_vehicle_best_known.py",
        )

    def _evaluate(self, x: Array) -> Evaluation:
        """Apply the formula of the module, block by block."""
        objective = np.empty(len(x))
        constraints = np.empty((len(x), NUM_CONSTRAINTS))
        for start in range(0, len(x), BLOCK):
            rows = slice(start, start + BLOCK)
            block = np.ascontiguousarray(x[rows].T)
            mass = _ordered_sum(self.coefficients.mass[:, None] * block)
            objective[rows] = self.coefficients.base + mass
            response = _response(self.coefficients, block)
            constraints[rows] = (self.coefficients.scale[:, None] * response).T
        return Evaluation(objective, constraints)
