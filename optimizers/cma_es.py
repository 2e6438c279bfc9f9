"""CMA-ES of pycma as ask/tell, with three ways to handle constraints.

Method card. The covariance matrix adaptation evolution strategy samples a population from a normal
distribution, ranks it, and moves mean, step size and covariance towards its better half. Source:
N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772; pycma,
doi:10.5281/zenodo.2559634. Settings, as in the SCBO paper where it tells them: unit cube with
pycma's bound transformation, initial step size 0.25, start at the best point of the initial design,
population = batch size (4 + 3 ln d where that is below 4). The three ids differ in the ranking:

- `cma-es`: death penalty, the paper's baseline. Feasible points by objective; all infeasible ones
  are equally bad, so that they keep the order they were sampled in, which is a random one. While
  nothing is feasible the strategy is a random walk.
- `cma-es-violation`: as above, but infeasible points by total violation, then objective.
- `cma-es-al`: pycma's augmented Lagrangian with a multiplier and a weight for each constraint,
  adapted to the best point of every generation (A. Atamna, A. Auger, N. Hansen, "Linearly
  Convergent Evolution Strategies via Augmented Lagrangian Constraint Handling", FOGA 2017, with
  pycma's later settings); the squared violation alone until something is feasible.

What we changed and why: the strategy is told ranks, the only thing it uses of fitness, so that no
value is too large, undefined or tied; pycma's tests for stopping (flat fitness, stagnation and the
like) are never asked, as the budget is the harness's; when the largest standard deviation falls
below 1e-10 of the box, so that nothing new can come, it starts again at a uniformly random point;
whole numbers are rounded and keep a standard deviation of 0.2 of the width of a number, and points
that break a known linear constraint are moved to the nearest one that does not, while the strategy
goes on from its own samples;
random numbers come from a generator of its own, NumPy's global one is neither read nor changed.

A generation is complete when as many points as the population has were told, whichever they are: a
worker that falls free before that gets another sample of the present distribution, and a point of
an earlier distribution that comes in late counts for the present generation, its distance from the
mean limited as pycma does with injected points. Points never asked can only become the start.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from cbo_suite.errors import InvalidTask, MissingExtra
from cbo_suite.optimizers.shared.archive import Archive
from cbo_suite.protocols import Array, Evaluation, Space

Handling = Literal["death-penalty", "violation", "augmented-lagrangian"]

# Standard deviation in the unit cube below which a strategy has nothing new to offer.
CONVERGED = 1e-10
# Standard deviation of a whole number in widths of its cell that is kept, so that one sample in
# eighty leaves the cell from its middle.
LEAST_OF_WHOLE = 0.2
# pycma needs that many points to tell better from worse.
SMALLEST_POPULATION = 4


class _Sample(NamedTuple):
    """A point the strategy drew: its number, and its place in the unit cube, shape `(d,)`."""

    number: int
    unit: Array


class _Result(NamedTuple):
    """A sample and what was told of it: objective, constraints `(m,)`, all of them finite."""

    sample: _Sample
    objective: float
    constraints: Array
    violation: float


class CmaEs:
    """CMA-ES; see the module's text for the ways to handle constraints."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        handling: Handling = "death-penalty",
        initial_sigma: float = 0.25,
        population: int | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            space: The box and the number of constraints.
            budget: Not used: the strategy runs until it is asked no more.
            batch_size: Size of the population where it is at least 4.
            seed: Seed of all its random numbers.
            handling: How constraints enter the ranking.
            initial_sigma: First standard deviation in the unit cube, at most 1/3.
            population: Points of a generation, at least 4; by default as told by the batch size.

        Raises:
            MissingExtra: pycma is not installed.
        """
        if handling not in get_args(Handling):
            raise InvalidTask(f"handling must be one of {get_args(Handling)}, got {handling!r}")
        if not 0.0 < initial_sigma <= 1.0 / 3.0:
            raise InvalidTask(
                f"initial_sigma must be above 0 and at most 1/3 of the box, got {initial_sigma!r}"
            )
        if population is not None and population < SMALLEST_POPULATION:
            raise InvalidTask(f"population must be at least 4, got {population!r}")
        self._cma = _import_cma()
        self._space = space
        self._handling = handling
        self._initial_sigma = initial_sigma
        default = 4 + int(3.0 * np.log(space.dim))
        self._population = population or (
            batch_size if batch_size >= SMALLEST_POPULATION else default
        )
        cells = np.where(space.integer, space.upper - space.lower + 1.0, np.inf)
        self._least_deviation = LEAST_OF_WHOLE / cells
        self._random = np.random.default_rng(seed)
        self._archive = Archive(space)
        self._strategy: Any = None
        self._lagrangian: Any = None
        self._starts = 0
        self._generations = 0
        self._drawn = 0
        self._generation_start = 0
        self._fresh: deque[_Sample] = deque()
        # By point of the box: with whole numbers several samples may be the same one.
        self._pending: dict[bytes, list[_Sample]] = {}
        self._told: list[_Result] = []

    def ask(self, n: int = 1) -> Array:
        """Return up to `n` points of the present generation, shape `(k, d)`."""
        if self._strategy is None:
            self._start()
        if not self._fresh:
            self._draw(n)
        samples = [self._fresh.popleft() for _ in range(min(n, len(self._fresh)))]
        points = self._space.place(np.array([sample.unit for sample in samples]))
        for x, sample in zip(points, samples, strict=True):
            self._pending.setdefault(x.tobytes(), []).append(sample)
        return points

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results for points `(n, d)`, asked or not."""
        x = np.asarray(x, dtype=float)
        finite = self._archive.add(x, evaluation)
        violation = evaluation.violation
        for row, point in enumerate(x):
            key = point.tobytes()
            samples = self._pending.get(key)
            if samples:
                sample = samples.pop(0)
                if not samples:
                    del self._pending[key]
                objective, constraints = float(finite.objective[row]), finite.constraints[row]
                self._told.append(_Result(sample, objective, constraints, float(violation[row])))
        if len(self._told) >= self._population:
            self._update()

    def inspect(self) -> dict[str, float]:
        """Return generations, restarts, population and the present step size."""
        sigma = self._initial_sigma if self._strategy is None else float(self._strategy.sigma)
        return {
            "generations": self._generations,
            "restarts": max(0, self._starts - 1),
            "population": self._population,
            "sigma": sigma,
        }

    def _start(self) -> None:
        """Start a strategy: at the best told point first, at a random one after that."""
        dim = self._space.dim
        if self._starts > 0:
            mean = self._random.random(dim)
        elif self._archive.best_x is not None:
            mean = np.clip(self._space.to_unit(self._archive.best_x), 0.0, 1.0)
        else:
            mean = np.full(dim, 0.5)
        self._starts += 1
        options = {
            "bounds": [0.0, 1.0],
            "popsize": self._population,
            "randn": lambda *shape: self._random.standard_normal(shape),
            "seed": np.nan,
            "verbose": -10,
            "verb_log": 0,
            "verb_disp": 0,
            "signals_filename": None,
        }
        if self._space.integer.any() and dim > 1:
            options["minstd"] = self._least_deviation
        if dim == 1:
            # pycma 4.5 fails where it limits the standard deviation of a single variable.
            options["maxstd"] = np.inf
        with _quiet():
            self._strategy = self._cma.CMAEvolutionStrategy(mean, self._initial_sigma, options)
            if self._handling == "augmented-lagrangian" and self._space.num_constraints > 0:
                self._lagrangian = _augmented_lagrangian(
                    self._cma, dim, find_feasible_first=not self._archive.has_feasible
                )
        self._begin_generation()

    def _begin_generation(self) -> None:
        """Draw a whole population at once, which pycma relies on when it mirrors samples."""
        self._fresh.clear()
        self._generation_start = self._drawn
        self._draw(self._population)

    def _draw(self, count: int) -> None:
        """Sample the present distribution."""
        with _quiet():
            units = self._strategy.ask(count)
        for unit in units:
            self._fresh.append(_Sample(self._drawn, unit))
            self._drawn += 1

    def _update(self) -> None:
        """Rank the generation, let the strategy learn from it and begin the next one."""
        # The order of telling is the workers'; the order of drawing is the strategy's own.
        results = sorted(self._told, key=lambda result: result.sample.number)
        self._told = []
        late = [i for i, r in enumerate(results) if r.sample.number < self._generation_start]
        ranks = self._ranks(results)
        with _quiet():
            self._strategy.tell([r.sample.unit for r in results], ranks, check_points=late or None)
            if self._lagrangian is not None:
                self._lagrangian.update(self._strategy)
        self._generations += 1
        if np.all(self._strategy.stds < np.maximum(CONVERGED, 1.1 * self._least_deviation)):
            self._start()
        else:
            self._begin_generation()

    def _ranks(self, results: list[_Result]) -> list[float]:
        """Return the rank of each result, 0 for the best; ties go to the first drawn."""
        objective = np.array([result.objective for result in results])
        violation = np.array([result.violation for result in results])
        feasible = violation == 0.0
        if self._lagrangian is not None:
            if feasible.any():
                # Else one generation would mix the two measures before and after the first one.
                self._lagrangian.finding_feasible = False
            with _quiet():
                values = [
                    self._lagrangian(np.concatenate([[result.objective], result.constraints]))
                    for result in results
                ]
            order = np.lexsort((np.array(values),))
        elif self._handling == "death-penalty":
            order = np.lexsort((np.where(feasible, objective, 0.0), ~feasible))
        else:
            order = np.lexsort((objective, violation))
        ranks: NDArray[np.float64] = np.empty(len(results))
        ranks[order] = np.arange(len(results))
        return list(ranks)


def _augmented_lagrangian(cma: Any, dim: int, find_feasible_first: bool) -> Any:
    """Return pycma's augmented Lagrangian as a function of values `(1 + m,)`: f, then c.

    Args:
        cma: The module.
        dim: Number of variables.
        find_feasible_first: Whether it is the squared violation until a point is feasible.
    """

    class Silent(cma.AugmentedLagrangian):  # type: ignore[misc]
        """Without loggers, which would make a folder when they are made."""

        def _init_(self) -> None:
            self.logging = 0
            super()._init_()

    fitness = cma.ConstrainedFitnessAL(
        lambda values: values[0],
        lambda values: values[1:],
        dimension=dim,
        find_feasible_first=find_feasible_first,
        archives=False,
    )
    fitness._al = Silent(dim)
    return fitness


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep pycma's remarks off the console."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _import_cma() -> Any:
    """Import pycma, or say how to install it."""
    try:
        with _quiet():
            import cma
    except ImportError as error:
        raise MissingExtra('cma-es needs pycma: pip install "cbo-suite[cma]"') from error
    return cma
