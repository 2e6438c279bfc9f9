"""Compute the golden values of the synthetic vehicle and merge them into problems.json.

Run from the root of the repository, a few seconds:

    python -m tests.golden.derive_vehicle_values

This is a second implementation in plain Python: its own PCG64 generator, loops instead of arrays,
and exact fractions for the values, rounded to double precision once at the end. It shares no
line with the problem and needs no NumPy.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).with_name("problems.json")
POINTS = 6

# Where NumPy's seed sequence starts PCG64 for the seed 124068: np.random.PCG64(124068).state.
STATE = 80728671936575706193565715766701704946
INCREMENT = 159952010688794861459702499214973349283
# O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
# Number Generation", HMC-CS-2014-0905: the multiplier of the 128-bit generator.
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


class Stream:
    """PCG64 with the XSL-RR output, as doubles in [0, 1)."""

    def __init__(self, state: int = STATE) -> None:
        """Start at a 128-bit state."""
        self.state = state

    def uniform(self) -> float:
        """Draw the next number: the upper 53 of 64 bits."""
        self.state = (self.state * MULTIPLIER + INCREMENT) % 2**128
        folded = (self.state >> 64) ^ (self.state % 2**64)
        turn = self.state >> 122
        rotated = ((folded >> turn) | (folded << (64 - turn))) % 2**64
        return (rotated >> 11) / 2**53

    def between(self, low: float, high: float) -> float:
        """Draw the next number of [low, high)."""
        return low + (high - low) * self.uniform()


class Bump(NamedTuple):
    """One radial bump: height and (variable, centre) pairs."""

    height: float
    centers: list[tuple[int, float]]


class Response(NamedTuple):
    """One response: scale, offset, (variable, slope) pairs, squared length and bumps."""

    scale: float
    offset: float
    trend: list[tuple[int, float]]
    length: float
    bumps: list[Bump]

    def unscaled(self, x: list[float]) -> Fraction:
        """Evaluate trend and bumps exactly."""
        total = Fraction(self.offset)
        for variable, slope in self.trend:
            total += Fraction(slope) * Fraction(x[variable])
        for bump in self.bumps:
            radius = Fraction(0)
            for variable, center in bump.centers:
                radius += (Fraction(x[variable]) - Fraction(center)) ** 2
            total += Fraction(bump.height) / (1 + radius / Fraction(self.length)) ** 2
        return total


def grid(stream: Stream, *shape: int) -> list[float]:
    """Draw one number for each cell of an array, last index fastest."""
    return [stream.uniform() for _ in range(math.prod(shape))]


def smallest(values: list[float], count: int) -> list[int]:
    """Return the positions of the smallest values, in order of value."""
    return sorted(range(len(values)), key=lambda position: values[position])[:count]


def generate() -> tuple[list[float], list[float], list[Response]]:
    """Return the masses, the witness and the responses, offsets rounded from exact levels."""
    stream = Stream()
    is_shape = [value < 1 / 6 for value in grid(stream, 124)]
    first = [stream.between(0.8, 2.4) for _ in range(124)]
    second = [stream.between(0.5, 2.0) for _ in range(124)]
    mass = [0.0 if shape else a * b for shape, a, b in zip(is_shape, first, second, strict=True)]
    carries = [value < 0.35 for value in grid(stream, 124)]
    witness = [(0.6 if carry else 0.1) + 0.35 * stream.uniform() for carry in carries]

    keys = grid(stream, 44, 68)
    variables = []
    for j in range(68):
        start = (j * 8 // 68) * 124 // 8
        order = smallest([keys[position * 68 + j] for position in range(44)], 24)
        variables.append([(position + start) % 124 for position in order])
    strength = grid(stream, 24, 68)
    support = [stream.between(0.2, 1.0) for _ in range(24 * 68)]
    tilt = [stream.between(-1.0, 1.0) for _ in range(24 * 68)]
    keys = grid(stream, 24, 10, 68)
    centers = grid(stream, 12, 10, 68)
    roughness = [stream.between(1.0, 9.0) for _ in range(68)]
    heights = [stream.between(-1.0, 1.0) for _ in range(10 * 68)]
    lengths = [stream.between(1.0, 3.0) for _ in range(68)]
    ease = grid(stream, 68)
    exponents = [math.floor(stream.between(-3.0, 4.0)) for _ in range(68)]

    responses = []
    for j in range(68):
        trend = []
        for t in range(24):
            variable, cell = variables[j][t], t * 68 + j
            helps = support[cell] if carries[variable] else 0.0
            trend.append((variable, strength[cell] * strength[cell] * (tilt[cell] - helps)))
        bumps = []
        for k in range(10):
            order = smallest([keys[(t * 10 + k) * 68 + j] for t in range(24)], 12)
            places = [(variables[j][order[p]], centers[(p * 10 + k) * 68 + j]) for p in range(12)]
            bumps.append(Bump(roughness[j] * heights[k * 68 + j], places))
        draft = Response(2.0 ** exponents[j], 0.0, trend, lengths[j], bumps)
        margin = 0.1 + 3.9 * ease[j] * ease[j]
        offset = float(-(draft.unscaled(witness) + Fraction(margin)))
        responses.append(draft._replace(offset=offset))
    return mass, witness, responses


def evaluate(mass: list[float], responses: list[Response], x: list[float]) -> dict[str, object]:
    """Evaluate one point."""
    pairs = zip(mass, x, strict=True)
    objective = Fraction(120) + sum(Fraction(weight) * Fraction(value) for weight, value in pairs)
    return {
        "x": x,
        "objective": float(objective),
        "constraints": [float(Fraction(r.scale) * r.unscaled(x)) for r in responses],
    }


def main() -> None:
    """Replace the entry of the vehicle: centre, witness and random points."""
    mass, witness, responses = generate()
    stream = Stream(1)
    points = [[0.5] * 124, witness]
    points += [[round(value, 8) for value in grid(stream, 124)] for _ in range(POINTS)]
    golden = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
    golden["vehicle-124d-v1"] = [evaluate(mass, responses, x) for x in points]
    TARGET.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
