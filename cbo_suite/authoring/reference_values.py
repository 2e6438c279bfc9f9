"""The reference values of a problem, which its scores are measured by, made from the problem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from cbo_suite.authoring.extremes import FEW_EVALUATIONS, Effort, search_extreme
from cbo_suite.errors import InvalidTask
from cbo_suite.files import write_whole
from cbo_suite.harness import run
from cbo_suite.protocols import Array, BestKnown, ConstrainedProblem
from cbo_suite.registry import (
    OWN_PACKAGE,
    list_problems,
    make_problem,
    package_folder,
    protocol_of,
)
from cbo_suite.scoring.references import (
    REFERENCES,
    Reference,
    encode_references,
    read_references,
    suite_file,
)

SEEDS = range(30)


def default_effort(problem: ConstrainedProblem) -> Effort:
    """Return how long a problem is searched, by whether it declares `cheap = False`."""
    return Effort() if getattr(problem, "cheap", True) else FEW_EVALUATIONS


def derive_reference(
    problem: ConstrainedProblem,
    *,
    effort: Effort | None = None,
    known: Array | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Reference:
    """Make the reference values of a problem.

    - best: the problem's `best_known`; what a search finds where it declares none.
    - worst: the largest feasible objective value that a search finds.
    - level: the median final value of those of 30 runs of random search at the problem's protocol
      that end feasible; the worst value if none does.

    Args:
        problem: The problem.
        effort: How long to search, by default by whether the problem declares `cheap = False`.
        known: Feasible points of large values that are known, shape `(k, d)`.
        note: Called with what is being done.

    Raises:
        EvaluationFailed: No feasible point is known or was found.
        InvalidTask: The best known point is none, or all feasible values are the same.
    """
    if effort is None:
        effort = default_effort(problem)
    best = _best_known(problem, effort, note)
    note("searching the worst feasible value")
    points = [best.x[None]] if known is None else [best.x[None], known]
    worst_x = search_extreme(problem, -1, effort, np.concatenate(points))
    # Adding zero turns -0 into 0.
    worst = float(problem.evaluate(worst_x[None]).objective[0]) + 0.0
    note(f"worst {worst:.10g}; running random search with {len(SEEDS)} seeds")
    protocol = protocol_of(problem)
    finals = []
    for seed in SEEDS:
        done = run(problem, "random-search", **protocol._asdict(), seed=seed)
        if done.feasible:
            finals.append(done.best_objective)
            _refuse_better(problem, best, done.best_objective, done.best_x)
            values = np.where(done.evaluation.feasible, done.objective, -np.inf)
            if values.max() > worst:
                worst, worst_x = float(values.max()), done.x[np.argmax(values)]
    note(f"random search is feasible in {len(finals)} of {len(SEEDS)} runs")
    level = float(np.median(finals)) if finals else worst
    if not best.objective < level <= worst:
        raise InvalidTask(
            f"{problem.id} gives no scale: best {best.objective}, level {level}, worst {worst}; "
            "its feasible points must differ in their objective values"
        )
    return Reference(
        best=best.objective,
        best_x=best.x.tolist(),
        worst=worst,
        worst_x=worst_x.tolist(),
        level=level,
        budget=protocol.budget,
        n_init=protocol.n_init,
        feasibility_tolerance=0.0,
        optional=False,
        source=f"best: {best.source}; others: cbo references",
    )


def _best_known(
    problem: ConstrainedProblem, effort: Effort, note: Callable[[str], None]
) -> BestKnown:
    """Return the best point that a problem declares, if it is one; else search it.

    Raises:
        InvalidTask: The declared point is not feasible or has another value.
    """
    best: BestKnown | None = getattr(problem, "best_known", None)
    if best is None:
        note("searching the best feasible value, as the problem declares no `best_known`")
        x = search_extreme(problem, 1, effort, np.empty((0, problem.space.dim)))
        value = float(problem.evaluate(x[None]).objective[0])
        return BestKnown(value, x, "the search of cbo references")
    values = problem.evaluate(best.x[None])
    if not values.feasible[0] or not np.isclose(values.objective[0], best.objective, rtol=1e-9):
        raise InvalidTask(
            f"the best_known of {problem.id} is no feasible point of value {best.objective}: it "
            f"gives {values.objective[0]} with violation {values.violation[0]}"
        )
    return best


def _refuse_better(problem: ConstrainedProblem, best: BestKnown, value: float, x: Array) -> None:
    """Refuse a best known value that random search beats."""
    if value < best.objective:
        raise InvalidTask(
            f"random search finds {value} on {problem.id} at x={x.tolist()}, which is better than "
            f"its best known value {best.objective}: correct `best_known`, or search longer"
        )


def references_file(problem_id: str) -> Path | None:
    """Return the file where the references of a registered problem belong.

    The suite has one for all problems that it lists; another package has `references.json` in its
    folder. None if the problem is a module that belongs to no package, or of a family.
    """
    packages = {info.id: info.package for info in list_problems()}
    if packages.get(problem_id, OWN_PACKAGE) == OWN_PACKAGE:
        return suite_file() if problem_id in packages else None
    folder = package_folder(problem_id)
    return None if folder is None else folder / REFERENCES


def write_reference(problem_id: str, path: Path, reference: Reference) -> None:
    """Add the references of a problem to a file, in the order of the registry.

    Raises:
        RecordError: The file holds something else.
    """
    # Read just before it is written: another process may have added another problem meanwhile.
    known = (read_references(path) if path.exists() else {}) | {problem_id: reference}
    order = [info.id for info in list_problems()]
    ordered = {id_: known.pop(id_) for id_ in order if id_ in known} | known
    write_whole(path, encode_references(ordered))


def derive_and_write(
    problem_id: str,
    path: Path | None,
    effort: Effort | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[Reference, Path]:
    """Make the references of a registered problem and add them to a file.

    Args:
        problem_id: Its full id.
        path: The file; None for where they belong.
        effort: How long to search, None for the default.
        note: Called with what is being done.

    Raises:
        InvalidTask: The problem has references already, which are frozen, or no file for them.
    """
    path = references_file(problem_id) if path is None else path
    if path is None:
        raise InvalidTask(
            f"{problem_id} is of a family or in a module without a package, which has no "
            f"{REFERENCES}: name a file with --out, and pass it to "
            "`cbo leaderboard build --references`"
        )
    if path.exists() and problem_id in read_references(path):
        raise InvalidTask(
            f"{path} has the references of {problem_id}, and references are frozen: what changes "
            "the problem or its protocol is a new version of the id. If it is not published yet, "
            "remove its entry and derive it again"
        )
    reference = derive_reference(make_problem(problem_id), effort=effort, note=note)
    write_reference(problem_id, path, reference)
    return reference, path
