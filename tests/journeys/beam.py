"""An engineer's script: the lightest beam that holds, with everything one may wish on the way.

The simulator is slow in truth, fails now and then, and one of its meshes never ends. Run it in an
empty folder: `python beam.py`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbo_suite as cbo
from cbo_suite.errors import CboError

Point = NDArray[np.float64]
NAMES = ["width", "height", "ribs", "damping"]
LOWER, UPPER = [1.0, 1.0, 0.0, 0.01], [5.0, 5.0, 4.0, 100.0]
LIMITS = ["stress", "buckling"]


def simulate(x: Point) -> dict[str, Any]:
    """One beam: its weight, and by how much it breaks its limits."""
    width, height, ribs, damping = x
    if width > 4.7:
        raise RuntimeError("the mesh is degenerate")
    weight = width * height + 0.2 * ribs + 0.1 * np.log(damping) ** 2
    return {
        "objective": weight if height < 4.9 else np.nan,
        "constraints": {
            "stress": 8.0 - width * height**2 - ribs,
            "buckling": height - 3.0 * width,
        },
    }


def hang_if_wide(x: Point) -> dict[str, Any]:
    """The same beam on a day on which wide meshes never end."""
    if x[0] > 3.0:
        time.sleep(3600)
    return simulate(x)


# What stays the same from call to call.
BEAM: dict[str, Any] = {
    "lower": LOWER,
    "upper": UPPER,
    "names": NAMES,
    "constraint_names": LIMITS,
    "vectorized": False,
    "integer": ["ribs"],
    "log_scale": ["damping"],
    "linear": ([{"width": 1.0, "height": 1.0}], [7.5]),
}


def main() -> None:
    """Walk from zero to a result."""
    # A first try: ten evaluations, the old design among them.
    old = [2.0, 3.0, 1.0, 1.0]
    first = cbo.minimize(simulate, budget=10, optimizer="cei", x0=old, **BEAM)
    assert (first.run.x[0] == old).all()
    assert first.fun <= simulate(np.array(old))["objective"]

    # Its results, and those of a drawer, are known when the real work begins; they cost nothing.
    known = first.as_data()
    second = cbo.minimize(
        simulate, budget=15, optimizer="cei", data=known, journal="beam.jsonl", **BEAM
    )
    assert second.nfev == 15
    assert second.fun <= first.fun
    assert (second.run.x[:, 2] % 1 == 0).all()
    assert (second.run.x[:, 0] + second.run.x[:, 1] <= 7.5).all()

    # The computer was switched off: the same call, even without the data, evaluates nothing again.
    again = cbo.minimize(simulate, budget=15, optimizer="cei", journal="beam.jsonl", **BEAM)
    assert again.run.digest == second.run.digest
    assert again.data is not None
    assert (again.data.x == known.x).all()

    # There is money for more, but five are good enough, and so is a minute.
    third = cbo.minimize(
        simulate,
        budget=40,
        optimizer="cei",
        journal="beam.jsonl",
        stop_at=second.fun + 1.0,
        stop_after=60.0,
        callback=lambda progress: progress.done >= 20,
        **BEAM,
    )
    assert third.nfev == 15
    assert "stopped after 15 of 40 evaluations: a feasible value of at most" in third.message
    assert "the same call without stop_at goes on from beam.jsonl" in third.message

    # What does the model think, of this beam and of one with a rib more?
    more = third.x.copy()
    more[NAMES.index("ribs")] += 1.0
    thought = third.model.predict([third.x, more])
    print("expected weights:", thought.objective.mean, "+-", thought.objective.deviation)
    print("probably feasible:", thought.feasible)
    assert thought.objective.mean[1] > thought.objective.mean[0] - 1.0
    third.plot("beam.png")
    third.to_csv("beam.csv")
    print(third.message)

    # Meshes that never end are given up; whatever failed is counted.
    late = cbo.minimize(
        hang_if_wide, budget=8, optimizer="random-search", evaluation_timeout=0.5, **BEAM
    )
    assert late.failures["timeout"] == int((late.run.x[:, 0] > 3.0).sum()) > 0
    assert f"{late.failures['timeout']} timed out" in late.message

    # Slips are told before anything is simulated.
    slips: list[dict[str, Any]] = [
        {"lower": UPPER, "upper": LOWER},
        {"x0": [9.0, 3.0, 1.0, 1.0]},
        {"data": (known.x, known.objective[:-1], known.constraints)},
        {"data": (known.x, known.objective * np.nan, known.constraints)},
        {"integer": ["rib"]},
        {"integer": [7]},
        {"linear": ([{"width": 1.0, "height": 1.0}], [1.0])},
    ]
    for slip in slips:
        try:
            cbo.minimize(lambda x: exit("simulated"), optimizer="cei", **(BEAM | slip))
        except CboError as error:
            print(f"{type(error).__name__}: {error}")
        else:
            raise AssertionError(f"{slip} was taken")


if __name__ == "__main__":
    main()
