"""Claims 14 to 17: restarts, many models at once, random feasibility, consistency."""

from __future__ import annotations

import math
from itertools import product

from cbo_suite.paper.comparisons import TITLES, Part
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import ROVER
from cbo_suite.paper.measurements import BatchTable, RestartRuns
from cbo_suite.paper.progress import present_identity
from cbo_suite.paper.published import PublishedTable, published_numbers
from cbo_suite.scoring.statistics import wilson_interval

# A mean that differs from the printed one by less than this factor counts as the same.
SAME_FACTOR = 1.5
# Models and points: the sizes of the table that are measured, and the largest.
MEASURED_SIZES = tuple(product((1, 10, 50), (1000, 2000)))
LARGEST = (100, 8000)


def judge_restarts(evidence: Evidence) -> list[Part] | str:
    """Claim 14."""
    printed = published_numbers().restarts.values
    found = {problem: restart_runs(evidence, problem) for problem in printed}
    if missing := [problem for problem, runs in found.items() if runs is None]:
        return f"not measured: {', '.join(missing)}"
    return [
        _judge_interval(problem, runs, printed[problem])
        for problem, runs in found.items()
        if runs is not None
    ]


def restart_runs(evidence: Evidence, problem: str) -> RestartRuns | None:
    """Return when SCBO as it is restarted on a problem, None where that is not known."""
    if problem != ROVER:
        measured = evidence.measurements.restarts
        found = measured.problems.get(problem) if measured else None
        return found if found and found.identity == present_identity("scbo") else None
    runs = evidence.runs.get((ROVER, "scbo"))
    if runs is None or any(found is None for found in runs.restarts):
        return None
    known = [found for found in runs.restarts if found is not None]
    return RestartRuns(runs.best.shape[1], known)


def _judge_interval(problem: str, runs: RestartRuns, printed: float) -> Part:
    """Judge how often SCBO restarts on one problem."""
    text = f"{TITLES[problem]}: a restart about every {printed:g} evaluations"
    count = sum(map(len, runs.restarts))
    spent = f"{count} restarts in {len(runs.restarts)} runs of {runs.evaluations} evaluations"
    ours = runs.interval
    if math.isinf(ours):
        return Part(text, f"{spent}: none to measure an interval by", None)
    return Part(
        text,
        f"ours: every {ours:.0f} (mean by Kaplan and Meier, as the end of a run cuts the last "
        f"interval; {spent}; iterations are taken for evaluations; about: within a factor of "
        f"{SAME_FACTOR})",
        1 / SAME_FACTOR <= ours / printed <= SAME_FACTOR,
        "what counts as a success is not in the paper, and decides how long a region lives",
    )


def judge_batch_gp(evidence: Evidence) -> list[Part] | str:
    """Claim 15."""
    table = evidence.measurements.batch_gp
    sizes = {(cell.models, cell.points) for cell in table.cells} if table else set()
    measured = sum(size in sizes for size in MEASURED_SIZES)
    if table is None or measured < len(MEASURED_SIZES):
        return f"{measured} of {len(MEASURED_SIZES)} sizes were measured"
    printed = published_numbers().batch_gp
    many = [cell for cell in table.cells if cell.models > 1]
    single = " and ".join(f"{cell.gain:.2g}" for cell in table.cells if cell.models == 1)
    mean = max(cell.batched.mean_mae for cell in table.cells)
    variance = max(cell.batched.variance_mae for cell in table.cells)
    theirs = {(cell.models, cell.points): cell for cell in printed.cells}
    larger = sum(
        cell.batched.mean_mae > theirs[cell.models, cell.points].mean_mae for cell in table.cells
    )
    worst_mean = max(cell.mean_mae for cell in printed.cells)
    worst_variance = max(cell.variance_mae for cell in printed.cells)
    return [
        Part(
            "training several models at once is faster than a Cholesky factor for each",
            "; ".join(f"{c.models} x {c.points}: {c.gain:.2g} times as fast" for c in many)
            + f"; of one model {single} times ({table.processor}; the paper: {printed.processor})",
            all(cell.gain > 1.0 for cell in many),
            "conjugate gradients pay on a graphics processor, which works on all models at once",
        ),
        Part(
            "the errors are small: no larger than the largest of the paper's table",
            f"means {mean:.1e}, variances {variance:.1e}; the paper's largest are {worst_mean:.1e} "
            f"and {worst_variance:.1e}; at the same size the means have a larger error than the "
            f"paper's in {larger} of {len(table.cells)}",
            mean <= worst_mean and variance <= worst_variance,
            "the functions of the paper's table are not published",
        ),
        _judge_largest(table, printed),
    ]


def _judge_largest(table: BatchTable, printed: PublishedTable) -> Part:
    """Judge the largest size of the table, which few machines have the memory for."""
    models, points = LARGEST
    theirs = next(cell for cell in printed.cells if (cell.models, cell.points) == LARGEST)
    ours = next((cell for cell in table.cells if (cell.models, cell.points) == LARGEST), None)
    slow, fast = theirs.cholesky[0], theirs.batched[0]
    text = f"training {models} models of {points} points takes {fast:g} s instead of {slow:g} s"
    if ours is None:
        gigabytes = models * points**2 * 4 / 1e9
        return Part(text, f"not measured: kernel matrices alone take {gigabytes:.1f} GB", None)
    expected = slow / fast
    return Part(
        text,
        f"ours: {ours.batched.training:g} s instead of {ours.cholesky.training:g} s, "
        f"{ours.gain:.1f} times as fast; the paper: {expected:.1f} times (the same: within a "
        f"factor of {SAME_FACTOR})",
        ours.gain >= expected / SAME_FACTOR,
        "conjugate gradients pay on a graphics processor, which works on all models at once",
    )


def judge_feasibility(evidence: Evidence) -> list[Part] | str:
    """Claim 16."""
    printed = published_numbers().feasibility
    text = f"a random point of Ackley is feasible with probability {printed.share:.1e}"
    found = evidence.measurements.feasibility
    if found is None:
        return "not measured"
    low, high = wilson_interval(found.feasible, found.points)
    # Half of a ball of radius 5 that lies in the box of side 15: the plane cuts through its centre.
    exact = 0.5 * math.pi**5 / math.factorial(5) * 5.0**10 / 15.0**10
    return [
        Part(
            text,
            f"{found.feasible} of {found.points} points: 95 % interval {low:.3e} to {high:.3e} "
            f"(half a ball over the box: {exact:.4e}); the printed number stands for "
            f"{printed.share - printed.rounding:.2e} to {printed.share + printed.rounding:.2e}",
            low <= printed.share + printed.rounding and high >= printed.share - printed.rounding,
            "the constraints or the box of the paper's code differ from those of its text",
        )
    ]


def judge_consistency(evidence: Evidence) -> list[Part] | str:
    """Claim 17."""
    found = evidence.consistency
    if found is None:
        return "not checked: what SCBO needs is not installed here"
    return [
        Part(
            "every trust region ends after finitely many evaluations, if improvements gain at "
            "least a constant",
            f"{found.ended} of {found.cases} made-up objectives ended every region, after "
            f"{found.longest} evaluations at most. A success is a gain of a thousandth of the "
            "value, no constant: an objective that approaches zero by ever smaller gains lets a "
            "region live on",
            found.ended == found.cases,
            "the state machine has a fault",
        ),
        Part(
            "restarts draw fresh Sobol points",
            f"of {found.restarts} restarts {found.fresh} had no point in common with those before, "
            f"{found.spread} one point in each slice of every variable",
            found.fresh == found.spread == found.restarts > 0,
            "the designs of restarts are not drawn afresh",
        ),
    ]
