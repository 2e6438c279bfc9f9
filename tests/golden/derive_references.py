"""How the references of the paper's problems in cbo_suite/scoring/references.json were derived.

`cbo references ID` derives those of a new problem; they are frozen then. This script derives the
frozen ones again, to look at, with the efforts and the proofs that belong to single problems. Run
it from the root of the repository, some minutes on one core for all fifteen, or name some:

    python -m tests.golden.derive_references [ID...]

- best: the best known point of the problem, derived by the other scripts of this folder.
- worst: the largest feasible objective that `cbo references` finds, by SLSQP for smooth problems,
  by its evolution strategy for the rovers, whose objectives have steps. The lunar landers need no
  search: the objective is minus the mean of rewards that are at least 200 where all constraints
  hold, so -200 is never exceeded.
- level: the median final value of those of 30 runs of random search at the problem's protocol that
  end feasible, or the worst value if none does. The lunar landers take the worst value: in the
  paper's table random search is feasible in 0 of 30 runs.

MOPTA08 can only be evaluated with its own executable, which cannot be shipped. Its best value is
that of problems/mopta08/best_known.json, and its worst value is that of the centre of the box,
which stands in reference.json beside it: it violates constraints and bounds nothing, and feasible
values above it are clipped. The problem is optional, so that no overall score depends on it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.authoring import Effort, derive_reference
from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.base import Problem
from cbo_suite.registry import protocol_of
from cbo_suite.scoring.references import Reference, load_references

ROOT = Path(__file__).parents[2]
MOPTA08 = "mopta08-124d-v1"

SMOOTH = Effort(generations=0)
STEPS = Effort(starts=0, hops=0, generations=300, children=50)
EFFORTS = {
    "ackley-10d-v1": SMOOTH._replace(hops=600),
    "rosenbrock-5d-v1": SMOOTH._replace(hops=300),
    "vehicle-124d-v1": SMOOTH._replace(starts=2, hops=2),
    "rover-60d-v1": STEPS,
    "rover-60d-alt-v1": STEPS,
}


def derive(problem_id: str) -> Reference:
    """Derive the reference of a problem that can be searched; what is frozen is not lost."""
    problem = cbo.make_problem(problem_id)
    assert isinstance(problem, Problem)
    assert problem.best_known is not None
    known = np.array([load_references()[problem_id].worst_x])
    effort = EFFORTS.get(problem_id, SMOOTH)
    found = derive_reference(problem, effort=effort, known=known, note=print)
    source = f"best: {problem.best_known.source}; others: tests/golden/derive_references.py"
    return msgspec.structs.replace(found, source=source)


def derive_lunar(problem_id: str) -> Reference:
    """Take the proven worst value of a lunar lander."""
    problem = cbo.make_problem(problem_id)
    assert isinstance(problem, Problem)
    assert problem.best_known is not None
    budget, _, n_init = protocol_of(problem_id)
    return Reference(
        best=problem.best_known.objective,
        best_x=problem.best_known.x.tolist(),
        worst=-200.0,
        worst_x=None,
        level=-200.0,
        budget=budget,
        n_init=n_init,
        feasibility_tolerance=0.0,
        optional=False,
        source=f"best: {problem.best_known.source}; worst: bound, as every reward of a feasible "
        "point is at least 200; level: as worst, because random search is never feasible",
    )


def derive_mopta08(problem_id: str) -> Reference:
    """Take the values of MOPTA08 from its best known point and its reference points."""
    folder = ROOT / "problems" / "mopta08"
    known = json.loads((folder / "best_known.json").read_text("utf-8"))
    listed = json.loads((folder / "reference.json").read_text("utf-8"))["points"]
    points = {point["name"]: point for point in listed}
    budget, _, n_init = protocol_of(problem_id)
    return Reference(
        best=known["objective"],
        best_x=known["x"],
        worst=points["half"]["objective"],
        worst_x=None,
        level=points["half"]["objective"],
        budget=budget,
        n_init=n_init,
        feasibility_tolerance=0.0,
        optional=True,
        source="best: problems/mopta08/best_known.json; worst and level: the value of the centre "
        "of the box in problems/mopta08/reference.json, which is not feasible",
    )


def main(ids: list[str]) -> None:
    """Derive the named problems, by default all, and say where they differ from the frozen ones."""
    for problem_id in ids or PROBLEMS:
        if problem_id == MOPTA08:
            row = derive_mopta08(problem_id)
        elif problem_id.startswith("lunar"):
            row = derive_lunar(problem_id)
        else:
            row = derive(problem_id)
        frozen = msgspec.structs.replace(load_references(1)[problem_id], source=row.source)
        same = "as frozen" if row == frozen else "not as frozen"
        values = f"best {row.best:.10g} worst {row.worst:.10g} level {row.level:.10g}"
        print(f"{problem_id}: {values}, {same}")


if __name__ == "__main__":
    main(sys.argv[1:])
