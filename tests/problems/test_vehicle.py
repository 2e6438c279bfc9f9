"""The synthetic vehicle: pinned coefficients, stated difficulty, exact and repeatable values.

Its golden values come from a second implementation, `python -m tests.golden.derive_vehicle_values`;
its best known design from `python -m tests.golden.derive_vehicle_best_known`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.errors import EvaluationFailed, InvalidPoint
from cbo_suite.problems import vehicle as module
from cbo_suite.problems.vehicle import BLOCK, DIGEST, Vehicle, generate
from tests.golden import derive_vehicle_values as second
from tests.golden.derive_vehicle_best_known import descend


@cache
def vehicle() -> Vehicle:
    """Return the problem, made once."""
    return Vehicle()


def random_points(n: int, seed: int = 0) -> np.ndarray:
    """Return uniform points, shape `(n, 124)`."""
    return np.random.default_rng(seed).random((n, 124))


def test_it_is_registered_and_has_its_size() -> None:
    """The id makes it, with 124 variables in [0, 1] and 68 constraints."""
    problem = cbo.make_problem("vehicle-124d")
    assert problem.id == "vehicle-124d-v1"
    assert problem.space == cbo.Space(np.zeros(124), np.ones(124), 68)


def test_coefficients_have_the_pinned_digest() -> None:
    """The digest is over the little-endian bytes of the fields, computed here once more."""
    digest = hashlib.sha256()
    for field in generate():
        kind = "<f8" if field.dtype.kind == "f" else "<i8"
        digest.update(np.ascontiguousarray(field, dtype=kind).tobytes())
    assert digest.hexdigest() == DIGEST == generate().digest()
    assert generate(1).digest() != DIGEST


def test_another_digest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A NumPy that draws other numbers makes no problem of this id."""
    monkeypatch.setattr(module, "DIGEST", "0" * 64)
    with pytest.raises(EvaluationFailed, match=f"digest {DIGEST}, not 0000"):
        Vehicle()


def test_the_second_implementation_draws_the_same_coefficients() -> None:
    """Plain Python with a PCG64 of its own gives the same numbers, to the bit."""
    mass, witness, responses = second.generate()
    ours = vehicle().coefficients
    assert mass == ours.mass.tolist()
    assert witness == ours.witness.tolist()
    for j, response in enumerate(responses):
        trend = list(
            zip(ours.trend_variable[:, j].tolist(), ours.slope[:, j].tolist(), strict=True)
        )
        assert response.trend == trend
        assert (response.scale, response.length) == (ours.scale[j], ours.length[j])
        assert [bump.height for bump in response.bumps] == ours.height[:, j].tolist()
        for k, bump in enumerate(response.bumps):
            variables, centers = zip(*bump.centers, strict=True)
            assert list(variables) == ours.bump_variable[:, k, j].tolist()
            assert list(centers) == ours.center[:, k, j].tolist()
        # Ours is rounded at every step, the second once.
        assert response.offset == pytest.approx(ours.offset[j], rel=1e-14)


def test_structure_of_the_coefficients() -> None:
    """Parts and shapes, zones of neighbours, distinct variables, six doublings of magnitude."""
    ours = vehicle().coefficients
    assert 10 <= (ours.mass == 0.0).sum() <= 35
    assert (ours.mass >= 0.0).all()
    assert set(np.log2(ours.scale)) == set(range(-3, 4))
    for j in range(68):
        start = (j * 8 // 68) * 124 // 8
        assert set((ours.trend_variable[:, j] - start) % 124) <= set(range(44))
        assert len(set(ours.trend_variable[:, j])) == 24
        for k in range(10):
            bump = set(ours.bump_variable[:, k, j])
            assert len(bump) == 12
            assert bump <= set(ours.trend_variable[:, j])


def test_the_objective_is_linear_and_the_constraints_are_not() -> None:
    """Halfway between two points the mass is the mean and every response bends away from it."""
    ends = random_points(2, seed=1)
    evaluation = vehicle().evaluate(np.vstack([ends, ends.mean(axis=0)]))
    assert evaluation.objective[2] == pytest.approx(evaluation.objective[:2].mean(), rel=1e-14)
    bend = evaluation.constraints[2] - evaluation.constraints[:2].mean(axis=0)
    assert (np.abs(bend) / vehicle().coefficients.scale > 1e-4).all()


def test_the_centre_violates_ten_to_twenty_five_constraints() -> None:
    """It violates 23."""
    violated = (vehicle().evaluate(np.full((1, 124), 0.5)).constraints > 0).sum()
    assert violated == 23


def test_no_random_point_is_feasible() -> None:
    """None of 100 000, none even close; a million were drawn once, see docs/problems/vehicle.md."""
    fewest = 68
    for seed in range(10):
        evaluation = vehicle().evaluate(random_points(10_000, seed))
        assert not evaluation.feasible.any()
        fewest = min(fewest, int((evaluation.constraints > 0).sum(axis=1).min()))
    assert fewest >= 5


def test_the_witness_is_strictly_feasible() -> None:
    """Every response keeps a tenth of its magnitude from its limit."""
    evaluation = vehicle().evaluate(vehicle().witness[None, :])
    assert (evaluation.constraints[0] <= -0.0999 * vehicle().coefficients.scale).all()


def test_the_best_known_design_is_feasible_and_has_its_value() -> None:
    """It is lighter than the witness by a quarter, and a third of the responses hold it up."""
    known = vehicle().best_known
    assert known is not None
    evaluation = vehicle().evaluate(known.x[None, :])
    assert evaluation.feasible[0]
    assert evaluation.objective[0] == known.objective
    assert known.objective < 0.75 * vehicle().evaluate(vehicle().witness[None, :]).objective[0]
    active = evaluation.constraints[0] > -1e-4 * vehicle().coefficients.scale
    assert 68 / 4 <= active.sum() <= 68 / 2
    assert set(vehicle().coefficients.scale[active]) >= {0.25, 1.0, 4.0}


@pytest.mark.slow
def test_slsqp_improves_the_witness_by_a_tenth_and_not_the_best_known() -> None:
    """A local solver gains far more than 10 % from the witness and nothing from the best known."""
    start = vehicle().evaluate(vehicle().witness[None, :]).objective[0]
    reached, _ = descend(vehicle(), vehicle().witness)
    known = vehicle().best_known
    assert known is not None
    assert known.objective <= reached <= 0.9 * start
    again, _ = descend(vehicle(), known.x)
    assert again == pytest.approx(known.objective, rel=1e-5)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2 * BLOCK + 3), st.booleans())
def test_a_batch_equals_its_points_to_the_bit(seed: int, n: int, fortran: bool) -> None:
    """Neither the size of the batch nor the layout of its array changes a bit."""
    x = random_points(n, seed)
    batch = vehicle().evaluate(np.asfortranarray(x) if fortran else x)
    singles = [vehicle().evaluate(row[None, :]) for row in x]
    assert np.array_equal(batch.objective, np.concatenate([s.objective for s in singles]))
    assert np.array_equal(batch.constraints, np.concatenate([s.constraints for s in singles]))


def test_values_are_the_same_in_another_process_and_with_other_instructions() -> None:
    """Vector instructions of the processor change no bit."""
    script = (
        "import numpy as np, hashlib, cbo_suite as cbo\n"
        "e = cbo.make_problem('vehicle-124d-v1').evaluate("
        "np.random.default_rng(3).random((50, 124)))\n"
        "print(hashlib.sha256(e.objective.tobytes() + e.constraints.tobytes()).hexdigest())"
    )
    evaluation = vehicle().evaluate(random_points(50, seed=3))
    here = hashlib.sha256(evaluation.objective.tobytes() + evaluation.constraints.tobytes())
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == here.hexdigest()


def test_corners_are_finite_and_points_outside_are_refused() -> None:
    """The box is closed and ends at its bounds."""
    evaluation = vehicle().evaluate(np.array([np.zeros(124), np.ones(124)]))
    assert np.isfinite(evaluation.constraints).all()
    assert evaluation.objective[0] == 120.0
    with pytest.raises(InvalidPoint):
        vehicle().evaluate(np.full((1, 124), 1.0 + 1e-12))
