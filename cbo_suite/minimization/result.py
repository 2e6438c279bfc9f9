"""What `minimize` gives back: SciPy's fields, and what one wants to do with them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from cbo_suite.errors import InvalidPoint, MissingExtra, UnsupportedTask, one_line
from cbo_suite.harness import Factory, Run
from cbo_suite.minimization.inputs import Data, Names
from cbo_suite.protocols import Array, Evaluation, Optimizer, Prediction, Space

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What the words of a journal mean to the person who wrote the function.
_FAILURES = {"failed": "raised", "timeout": "timed out", "nonfinite": "not finite"}
# Words of why a run stopped, and the argument that stops the same call at once.
_STOPPING = {"callback returned True": "callback", "a feasible value of at most": "stop_at"}
# Violated constraints and characters of an error that a message names.
_NAMED, _ERROR_LENGTH = 3, 200


class Model:
    """What the models of the optimizer think, made of all results when it is first asked."""

    def __init__(
        self,
        run: Run,
        data: Data | None,
        space: Space,
        factory: Factory,
        options: Mapping[str, Any],
    ) -> None:
        """Keep what the optimizer of the run was made of and told.

        Args:
            run: The run.
            data: What it was told beforehand.
            space: Its space.
            factory: Makes its optimizer.
            options: Options of the optimizer.
        """
        self.space = space
        self._run, self._data, self._factory, self._options = run, data, factory, options

    @cached_property
    def _optimizer(self) -> Optimizer:
        """An optimizer like that of the run, told all results and never asked."""
        task = self._run.task
        optimizer = self._factory(
            self.space,
            budget=task.budget,
            batch_size=task.workers or task.batch_size,
            seed=task.seed,
            **self._options,
        )
        if self._data is not None:
            optimizer.tell(self._data.x, self._data.evaluation)
        if len(self._run.x):
            optimizer.tell(self._run.x, self._run.evaluation)
        return optimizer

    @property
    def available(self) -> bool:
        """Whether the optimizer has a model that predicts."""
        return hasattr(self._optimizer, "predict")

    def predict(self, x: ArrayLike) -> Prediction:
        """Say what is expected of one point `(d,)` or several `(p, d)`.

        Returns:
            Mean, deviation, median and 90 % interval of objective and constraints, and the
            probability of feasibility, always for p points.

        Raises:
            UnsupportedTask: The optimizer has no model.
            InvalidPoint: The points have the wrong shape or leave the space.
        """
        if not self.available:
            raise UnsupportedTask(
                f"{self._run.task.optimizer} has no model to predict with: minimize with one that "
                "has, such as scbo or cei"
            )
        try:
            points = np.asarray(x, dtype=float)
        except (TypeError, ValueError) as error:
            raise InvalidPoint(f"predict takes points of numbers, got {x!r:.80}") from error
        prediction: Prediction = self._optimizer.predict(  # type: ignore[attr-defined]
            points[None] if points.ndim == 1 else points
        )
        return prediction

    def __repr__(self) -> str:
        """Say whose model it is."""
        return f"<Model of {self._run.task.optimizer}>"


class Result(OptimizeResult):
    """What was found.

    Attributes:
        x: The best point, shape `(d,)`.
        fun: Its objective value.
        constr: Its constraint values, shape `(m,)`.
        maxcv: Its largest violation, 0 if it is feasible.
        success: Whether it is feasible.
        message: What came of it, in words: also why the run stopped early, and what failed.
        nfev: Number of evaluations.
        optimizer: The optimizer: its id, or "module:name" of a class that has none.
        choice: Why `auto` took it, "" if it was named.
        failures: How many of them "failed" (raised), "timeout" or were "nonfinite".
        names: Names of the variables, d of them.
        constraint_names: Names of the constraints, m of them.
        data: The results that were known beforehand, None if there were none.
        seconds_optimizer: Time spent in the optimizer.
        seconds_evaluation: Time spent in the function.
        model: What the models of the optimizer think, see `Model.predict`.
        run: The run with every evaluation.
    """

    x: Array
    fun: float
    constr: Array
    maxcv: float
    success: bool
    message: str
    nfev: int
    optimizer: str
    choice: str
    failures: dict[str, int]
    names: tuple[str, ...]
    constraint_names: tuple[str, ...]
    data: Data | None
    seconds_optimizer: float
    seconds_evaluation: float
    model: Model
    run: Run

    @property
    def best(self) -> dict[str, float]:
        """The best point by name: its variables, "objective" and its constraints."""
        return (
            dict(zip(self.names, self.x.tolist(), strict=True))
            | {"objective": self.fun}
            | dict(zip(self.constraint_names, self.constr.tolist(), strict=True))
        )

    def table(self) -> dict[str, list[Any]]:
        """Return every evaluation as columns, in the order told; known data stand first.

        The columns are "evaluation" (from 1; 0 for data), the variables, "objective", the
        constraints, "violation", "feasible", "status" ("data", "ok", "nonfinite", "failed" or
        "timeout") and "message".
        """
        run, x, evaluation = self.run, *self._everything()
        known = len(x) - len(run.x)
        columns: dict[str, list[Any]] = {
            "evaluation": [0] * known + list(range(1, len(run.x) + 1)),
            **{name: x[:, i].tolist() for i, name in enumerate(self.names)},
            "objective": evaluation.objective.tolist(),
        }
        for i, name in enumerate(self.constraint_names):
            columns[name] = evaluation.constraints[:, i].tolist()
        return columns | {
            "violation": evaluation.violation.tolist(),
            "feasible": evaluation.feasible.tolist(),
            "status": ["data"] * known + run.statuses,
            "message": [""] * known + [run.messages.get(i, "") for i in range(len(run.x))],
        }

    def to_csv(self, path: str | Path) -> None:
        """Write the table as comma-separated values; numbers read back exactly."""
        columns = self.table()
        with Path(path).expanduser().open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra(
                "to_frame needs pandas, which is not installed: pip install pandas; or use table() "
                "or to_csv(path), which need nothing"
            ) from error
        return pd.DataFrame(self.table())

    def as_data(self) -> Data:
        """Return all results with finite values, to be handed on as `data` of another call."""
        x, evaluation = self._everything()
        good = np.isfinite(evaluation.violation)
        return Data(x[good], evaluation.objective[good], evaluation.constraints[good])

    def plot(
        self,
        path: str | Path | None = None,
        *,
        variables: Sequence[int | str] | int | str | None = None,
    ) -> Figure:
        """Draw how the run converged, and what the model expects along each variable.

        Args:
            path: Where the figure is saved, such as "result.png"; None to return it only.
            variables: Names or indices of the variables to draw slices of, or one of them; [] for
                none, and by default the six along which the objective changes most.

        Raises:
            MissingExtra: matplotlib is not installed.
            InvalidTask: There is no such variable, or no model to draw slices of.
        """
        # Imported on use: it needs matplotlib.
        from cbo_suite.minimization.pictures import draw

        return draw(self, path, variables)

    def _everything(self) -> tuple[Array, Evaluation]:
        """Return known data and evaluations together, shapes `(n, d)`, `(n,)` and `(n, m)`."""
        return with_data(self.run, self.data)


def with_data(run: Run, data: Data | None) -> tuple[Array, Evaluation]:
    """Return known data and the evaluations of a run together, data first."""
    if data is None:
        return run.x, run.evaluation
    return np.concatenate([data.x, run.x]), Evaluation(
        np.concatenate([data.objective, run.objective]),
        np.concatenate([data.constraints, run.constraints]),
    )


def make_result(
    run: Run,
    names: Names,
    data: Data | None,
    model: Model,
    journal: str | Path | None,
    choice: str,
) -> Result:
    """Put together what was found.

    Args:
        run: The run.
        names: What variables and constraints are called.
        data: What was known beforehand.
        model: What the optimizer thinks.
        journal: Where the run is written, if it is.
        choice: Why `auto` took the optimizer, if it did.
    """
    x, evaluation = with_data(run, data)
    best = evaluation.best()
    chosen = best
    if run.recommended_x is not None:
        chosen = int(np.argmin(np.abs(x - run.recommended_x).max(axis=1)))
    constraints = evaluation.constraints[chosen]
    counts = Counter(run.statuses)
    found = _found(evaluation, chosen, best, names)
    parts = [found, _stopped(run, journal), _failed(run, counts)]
    fields: dict[str, Any] = dict(
        x=x[chosen].copy(),
        fun=float(evaluation.objective[chosen]),
        constr=constraints.copy(),
        maxcv=float(np.max(constraints, initial=0.0)),
        success=bool(evaluation.feasible[chosen]),
        message="; ".join(part for part in parts if part),
        nfev=len(run.x),
        optimizer=run.task.optimizer,
        choice=choice,
        failures={status: counts[status] for status in _FAILURES},
        names=names.variables,
        constraint_names=names.constraints,
        data=data,
        seconds_optimizer=run.seconds_optimizer,
        seconds_evaluation=run.seconds_evaluation,
        model=model,
        run=run,
    )
    return Result(**fields)


def _found(evaluation: Evaluation, chosen: int, best: int, names: Names) -> str:
    """Say what was found."""
    if not np.isfinite(np.column_stack(evaluation)).all(axis=1).any():
        return "no evaluation gave values: x is only one of the points that were tried"
    if evaluation.feasible[chosen]:
        return "a feasible point was found"
    if chosen != best:
        return "x is the point that the optimizer recommends; its own result is not feasible"
    text = "no feasible point was found: x is the point of least violation"
    values = evaluation.constraints[best]
    violated = [int(i) for i in np.argsort(-values) if values[i] > 0.0]
    if violated:
        worst = [f"{names.constraints[i]} is {values[i]:.3g}" for i in violated[:_NAMED]]
        more = f" and {len(violated) - _NAMED} more" if len(violated) > _NAMED else ""
        text += f" ({', '.join(worst)}{more} instead of at most 0)"
    return text


def _stopped(run: Run, journal: str | Path | None) -> str:
    """Say why a run stopped before its budget was spent, and how to go on; "" if it did not."""
    if run.status != "stopped":
        return ""
    # What stopped the run would stop the same call again.
    blamed = next((name for words, name in _STOPPING.items() if words in run.error), "")
    without = f" without {blamed}" if blamed else ""
    if journal is not None:
        advice = f"the same call{without} goes on from {journal}"
    else:
        rest = run.task.budget - len(run.x)
        advice = f"to go on, call again{without} with data=result.as_data() and a budget of {rest}"
    return f"stopped after {len(run.x)} of {run.task.budget} evaluations: {run.error}; {advice}"


def _failed(run: Run, counts: Mapping[str, int]) -> str:
    """Sum up the evaluations that gave no values, "" if all did."""
    kinds = [f"{counts[status]} {word}" for status, word in _FAILURES.items() if counts[status]]
    if not kinds:
        return ""
    total = sum(counts[status] for status in _FAILURES)
    text = f"{total} of {len(run.x)} evaluations gave no values ({', '.join(kinds)})"
    if run.messages:
        first = run.messages[min(run.messages)]
        text += f", the first error: {one_line(first, _ERROR_LENGTH)}"
    return text
