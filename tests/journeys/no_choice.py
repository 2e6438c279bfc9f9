"""An engineer who does not know optimizers and names none: the lightest tube that does not buckle.

Run it in an empty folder: `python no_choice.py`. It prints which optimizer served each call.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbo_suite as cbo
from cbo_suite.errors import CboError
from cbo_suite.study import Study

Point = NDArray[np.float64]

# What stays the same from call to call; radius and wall in cm.
TUBE: dict[str, Any] = {
    "lower": [1.0, 0.05],
    "upper": [10.0, 1.0],
    "names": ["radius", "wall"],
    "constraint_names": ["stress", "buckling"],
    "vectorized": False,
}
NOISE = np.random.default_rng(7)


def simulate(x: Point) -> dict[str, Any]:
    """One tube under 20 kN: its weight in kg, and by how much it breaks its limits."""
    radius, wall = x
    area = 2.0 * np.pi * radius * wall
    return {
        "objective": 0.785 * area,
        "constraints": {
            "stress": 2e4 / area / 5e3 - 1.0,
            "buckling": 2e4 / (area * radius**2) / 600.0 - 1.0,
        },
    }


def measure(x: Point) -> dict[str, Any]:
    """The same tube on a scale that trembles."""
    return simulate(x) | {"objective": simulate(x)["objective"] + 0.02 * NOISE.standard_normal()}


def say(what: str, result: Any) -> None:
    """Print who served a call, and why."""
    print(f"{what}: {result.optimizer} ({result.choice or 'named'})")


def main() -> None:
    """Minimise in every way, naming nothing."""
    logging.basicConfig(level=logging.INFO, format="LOG %(name)s %(message)s")

    # One tube after the other.
    first = cbo.minimize(simulate, budget=25, journal="tube.jsonl", **TUBE)
    say("one by one", first)
    assert first.success
    assert first.fun < 3.4

    # More money: the same journal goes on with the same optimizer, though by now it is a long run.
    more = cbo.minimize(
        simulate,
        budget=6000,
        journal="tube.jsonl",
        callback=lambda progress: progress.done >= 27,
        **TUBE,
    )
    say("going on", more)
    assert more.optimizer == first.optimizer
    assert more.nfev == 27
    assert (more.run.x[:25] == first.run.x).all()

    # Four machines; a scale that trembles; ten thousand tubes that cost nothing.
    say("four at once", cbo.minimize(simulate, budget=20, batch_size=4, **TUBE))
    say("noisy", cbo.minimize(measure, budget=15, options={"noisy": True}, **TUBE))
    say(
        "many",
        cbo.minimize(simulate, budget=10_000, callback=lambda p: p.done >= 40, **TUBE),
    )

    # A colleague knows better.
    say("by name", cbo.minimize(simulate, budget=15, optimizer="cobyqa", **TUBE))

    # The tubes are tested in another building: the file knows who was chosen.
    space = cbo.Space(TUBE["lower"], TUBE["upper"], 2)
    with Study("served.jsonl", space, budget=14) as study:
        print(f"served: {study.contents().beginning.optimizer} ({study.choice})")
        for point in study.ask(3):
            found = simulate(point.x)
            study.tell(point.id, found["objective"], list(found["constraints"].values()))

    # A slip is told before anything is simulated.
    try:
        cbo.minimize(lambda x: exit("simulated"), options={"delta": 0.1}, **TUBE)
    except CboError as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
