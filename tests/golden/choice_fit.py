"""The lines of `auto` for Gaussian processes, with their limits, as the records speak for them.

The lines have this form, and all in it is fitted to the records: the four limits and the three
optimizers.

    one point at a time, `first` to `last` variables     one of FIRST
    at most `most` variables                             one of OTHERS
    all else                                             one of OTHERS

The best mean score over all problems decides, families counted alike; each line needs problems of
three families, so that none is made for a single problem. Limits lie halfway between the numbers
of variables of the problems that they part. With a family left out all of it is fitted anew, so
that no problem has a part in what is taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

from cbo_suite.scoring.runs import family
from tests.golden.choice_evidence import Evidence, Problem, mean_score, weigh

# SLACK and PESC take one point at a time and at most 15 variables.
FIRST = ("cei", "slack", "scbo", "cobyla")
OTHERS = ("cei", "scbo", "cobyla")
FEWEST_FAMILIES = 3


class Lines(NamedTuple):
    """Limits of the number of variables, and an optimizer for each line.

    Attributes:
        first: Least of the first line.
        last: Most of the first line.
        most: Most of the second line.
        optimizers: Who is taken, line by line.
    """

    first: float
    last: float
    most: float
    optimizers: tuple[str, str, str]

    def take(self, problem: Problem) -> str:
        """Name the optimizer for a problem."""
        return self.optimizers[_line(problem, self.first, self.last, self.most)]


def fit_lines(evidence: Evidence, without: str = "") -> Lines | None:
    """Find the lines with the best mean score; None if there is too little to go by.

    Args:
        evidence: All rows.
        without: A problem whose family is left out.
    """
    known = {
        id_: problem
        for id_, problem in evidence.items()
        if set(OTHERS) <= set(problem.rows) and not (without and family(id_) == family(without))
    }
    found = max(_fits(known), key=lambda fit: fit[0], default=None)
    return None if found is None else found[1]


def _fits(known: Evidence) -> Iterator[tuple[float, Lines]]:
    """Yield lines that have enough problems, each with its mean score."""
    dims = sorted({problem.dim for problem in known.values()})
    weights = weigh(known)
    for most in _between(dims):
        few = [dim for dim in dims if dim < most]
        for first, last in combinations_with_replacement(few, 2):
            limits = (_below(first, dims), _above(last, dims), most)
            parts: tuple[list[str], list[str], list[str]] = ([], [], [])
            for id_, problem in known.items():
                parts[_line(problem, *limits)].append(id_)
            if any(len(set(map(family, part))) < FEWEST_FAMILIES for part in parts):
                continue
            if not all("slack" in known[id_].rows for id_ in parts[0]):
                continue
            scores, names = zip(
                *(
                    max(
                        (mean_score(known, {id_: weights[id_] for id_ in part}, name), name)
                        for name in candidates
                    )
                    for part, candidates in zip(parts, (FIRST, OTHERS, OTHERS), strict=True)
                ),
                strict=True,
            )
            yield sum(scores), Lines(*limits, names)


def _line(problem: Problem, first: float, last: float, most: float) -> int:
    """Number of the line that holds for a problem."""
    if problem.batch_size == 1 and first < problem.dim < last:
        return 0
    return 1 if problem.dim < most else 2


def _between(dims: Sequence[int]) -> Iterable[float]:
    """Halfway from each number to the next."""
    return [(one + other) / 2 for one, other in pairwise(dims)]


def _below(dim: int, dims: Sequence[int]) -> float:
    """Halfway from the number before, which may be none."""
    return max((limit for limit in _between(dims) if limit < dim), default=0.0)


def _above(dim: int, dims: Sequence[int]) -> float:
    """Halfway to the next number."""
    return min((limit for limit in _between(dims) if limit > dim), default=float("inf"))
