"""What can be done with a result: tables, models, figures, words."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import InvalidPoint, InvalidTask, MissingExtra, UnsupportedTask
from cbo_suite.minimization import Result
from cbo_suite.protocols import Array
from tests.doubles import Hill


def beam(x: Array) -> dict[str, Any]:
    """A beam that breaks down where it is wide; a wide one raises, a high one has no weight."""
    if x[0] > 4.0:
        raise ValueError("the mesh is\ndegenerate")
    weight = np.nan if x[1] > 4.5 else x[0] * x[1]
    return {"objective": weight, "constraints": {"stress": 6.0 - x[0] * x[1] ** 2}}


def minimize(**settings: Any) -> Result:
    """Minimise the weight."""
    given: dict[str, Any] = {
        "optimizer": "random-search",
        "budget": 30,
        "names": ["width", "height"],
        "constraint_names": ["stress"],
        "vectorized": False,
    }
    return cbo.minimize(beam, [1, 1], [5, 5], **(given | settings))


def test_failures_are_counted_and_summed_up() -> None:
    """By their kind, with the first error."""
    result = minimize()
    raised = int((result.run.x[:, 0] > 4.0).sum())
    nan = int(((result.run.x[:, 0] <= 4.0) & (result.run.x[:, 1] > 4.5)).sum())
    assert raised > 0
    assert nan > 0
    assert result.failures == {"failed": raised, "timeout": 0, "nonfinite": nan}
    assert (
        f"{raised + nan} of 30 evaluations gave no values ({raised} raised, {nan} not finite), the "
        "first error: ValueError: the mesh is degenerate"
    ) in result.message


def test_the_best_point_is_told_by_name() -> None:
    """Variables, objective and constraints in one dict."""
    result = minimize()
    width, height = result.x
    assert result.best == {
        "width": width,
        "height": height,
        "objective": result.fun,
        "stress": result.constr[0],
    }


def test_what_is_violated_has_its_name() -> None:
    """The worst constraint comes first."""

    def fun(x: Array) -> tuple[float, list[float]]:
        return 0.0, [1.0, 5.0, -1.0, 2.0, 1.5]

    result = cbo.minimize(
        fun,
        [0],
        [1],
        budget=3,
        optimizer=Hill,
        vectorized=False,
        constraint_names=["a", "b", "c", "d", "e"],
    )
    assert "(b is 5, d is 2, e is 1.5 and 1 more instead of at most 0)" in result.message
    assert result.maxcv == 5.0


def test_a_run_without_values_says_that_there_are_none() -> None:
    """Whatever the constraints are where the objective is missing, nothing was found."""

    def fun(x: Array) -> tuple[float, list[float]]:
        return np.nan, [1.0]

    settings: dict[str, Any] = {"num_constraints": 1, "budget": 3, "vectorized": False}
    result = cbo.minimize(fun, [0], [1], optimizer=Hill, **settings)
    assert result.message == (
        "no evaluation gave values: x is only one of the points that were tried; 3 of 3 "
        "evaluations gave no values (3 not finite)"
    )
    assert not result.success


def test_a_table_has_every_evaluation(tmp_path: Path) -> None:
    """Data first, with the names given; numbers of a file are those of the run, bit by bit."""
    data = np.array([[2.0, 2.0]]), np.array([4.0]), np.array([[-2.0]])
    result = minimize(data=data)
    path = tmp_path / "result.csv"
    result.to_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    head = "evaluation,width,height,objective,stress,violation,feasible,status,message".split(",")
    assert list(rows[0]) == head
    assert (rows[0]["status"], rows[0]["evaluation"], rows[1]["evaluation"]) == ("data", "0", "1")
    read = np.array([[float(row[name]) for name in head[1:5]] for row in rows[1:]])
    run = result.run
    np.testing.assert_array_equal(
        read, np.column_stack([run.x, run.objective, run.constraints]), strict=True
    )
    assert [row["status"] for row in rows[1:]] == run.statuses
    assert any("degenerate" in row["message"] for row in rows)


def test_a_data_frame_is_made_where_pandas_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the error says what works without."""
    result = minimize()
    pandas = pytest.importorskip("pandas")
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.shape == (30, 9)
    assert frame["feasible"].sum() == result.run.evaluation.feasible.sum()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install pandas; or use table\(\) or to_csv"):
        result.to_frame()


def test_a_model_says_what_it_expects() -> None:
    """At points that were evaluated, what was found there; the same from a journal or with data."""
    result = minimize(optimizer="cei", budget=14)
    good = np.isfinite(result.run.objective)
    prediction = result.model.predict(result.run.x[good])
    np.testing.assert_allclose(prediction.objective.mean, result.run.objective[good], atol=0.2)
    assert prediction.feasible[result.run.evaluation.feasible[good]].min() > 0.5
    one = result.model.predict(result.x)
    assert one.objective.mean.shape == one.feasible.shape == (1,)
    assert one.constraints.deviation.shape == (1, 1)
    for wrong in ("a", {"width": 2.0}, [[1.0, 2.0], [1.0]], None, 2.0, [9.0, 9.0]):
        with pytest.raises(InvalidPoint):
            result.model.predict(wrong)  # type: ignore[arg-type]
    told = minimize(optimizer="cei", budget=1, data=result.as_data())
    assert told.model.predict(result.x).objective.mean[0] == pytest.approx(result.fun, abs=0.2)


def test_without_a_model_that_is_said() -> None:
    """Predicting is refused, and the figure has no slices."""
    pytest.importorskip("matplotlib")
    result = minimize()
    with pytest.raises(UnsupportedTask, match="random-search has no model"):
        result.model.predict([2.0, 2.0])
    with pytest.raises(InvalidTask, match="slices need a model"):
        result.plot(variables=["width"])
    assert len(result.plot().axes) == 1


def test_a_figure_shows_the_course_and_slices(tmp_path: Path) -> None:
    """Of the variables named, by name or index; notebooks get a picture by themselves."""
    pytest.importorskip("matplotlib")
    result = minimize(
        optimizer="cei",
        budget=14,
        integer=["height"],
        log_scale=["width"],
        linear=([{"width": 1, "height": 1}], [8.0]),
        data=([[2.0, 2.0]], [4.0], [[-2.0]]),
    )
    path = tmp_path / "result.png"
    figure = result.plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [axes.get_xlabel() for axes in figure.axes] == ["evaluation", "", "width", "", "height"]
    assert figure.axes[1].get_xscale() == "log"
    heights = figure.axes[3].lines[0].get_xdata()
    assert set(np.asarray(heights)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert "best of the data" in [text.get_text() for text in legend.get_texts()]
    alone = result.plot(variables="height")
    assert len(result.plot(variables=[1, "width"]).axes) == 5
    assert [axes.get_xlabel() for axes in alone.axes] == ["evaluation", "", "height"]
    assert alone._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert len(result.plot(variables=0).axes) == 3
    assert len(result.plot(variables=[]).axes) == 1
    # What stands below a slice has the labels, also those of a logarithm's minor ticks.
    width = figure.axes[1].xaxis
    ticks = [*width.get_major_ticks(), *width.get_minor_ticks()]
    assert not any(tick.label1.get_visible() for tick in ticks)
    for variable in ("depth", "widht", 2, -1, 1.5, None, True):
        with pytest.raises(InvalidTask, match=r"variables: .*(width, height|mean 'width')"):
            result.plot(variables=[variable])  # type: ignore[list-item]


def test_a_figure_of_nothing_feasible_and_of_nothing_evaluated(tmp_path: Path) -> None:
    """Both are drawn."""
    pytest.importorskip("matplotlib")
    nothing = cbo.minimize(
        lambda x: (x[:, 0], x + 1.0), [0], [1], num_constraints=1, budget=6, optimizer=Hill
    )
    nothing.plot(tmp_path / "nothing.png")
    at_once = minimize(data=([[2.0, 2.0]], [4.0], [[-2.0]]), stop_at=4.0)
    figure = at_once.plot(tmp_path / "at_once.png", variables=[])
    assert at_once.nfev == 0
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["best of the data"]
