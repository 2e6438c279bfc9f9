"""Results that are known beforehand, and points to begin with."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.errors import InvalidData, InvalidPoint, InvalidTask, JournalDamaged, JournalError
from cbo_suite.journal import read_journal
from cbo_suite.protocols import Array, Evaluation
from cbo_suite.records import make_record
from tests.doubles import Expectant, Hill, StatefulHill, contents_of, rechained

CALLS: list[Array] = []


def bowl(x: Array) -> tuple[Array, Array]:
    """A bowl with its floor at (0.3, 0.3), where x1 + x2 >= 0.5."""
    CALLS.extend(x)
    return ((x - 0.3) ** 2).sum(axis=1), (0.5 - x.sum(axis=1))[:, None]


def minimize(**more: Any) -> Any:
    """Minimise the bowl over the unit square, by default with nine evaluations."""
    usual: dict[str, Any] = {"num_constraints": 1, "budget": 9, "n_init": 3, "optimizer": Hill}
    CALLS.clear()
    return cbo.minimize(bowl, [0, 0], [1, 1], **(usual | more))


def known(n: int = 12) -> tuple[Array, Array, Array]:
    """Results at random points, one of them twice."""
    x = np.random.default_rng(0).random((n, 2))
    x[1] = x[0]
    return x, *bowl(x)


class Column:
    """Numbers by the labels of their rows, as in a table from which rows were taken out."""

    def __init__(self, numbers: Array) -> None:
        """Label the rows from ten on."""
        self._rows = dict(enumerate(numbers, start=10))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the numbers, one row after another."""
        return np.array(list(self._rows.values()), dtype=dtype)

    def __getitem__(self, label: int) -> Any:
        """Return the row of a label, which is not its place."""
        return self._rows[label]


OPTIMIZERS = ("random-search", "sobol-search", "cobyla", "cobyqa", "cma-es", "scbo", "cei")


@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, Expectant, StatefulHill])
def test_every_optimizer_takes_data_and_resumes_with_them(tmp_path: Path, optimizer: Any) -> None:
    """They cost no budget; a journal that was cut off goes on bit by bit, without the data."""
    path, cut = tmp_path / "run.jsonl", tmp_path / "cut.jsonl"
    data = known()
    full = minimize(optimizer=optimizer, data=data, x0=[0.9, 0.8], journal=path)
    assert (full.nfev, len(CALLS)) == (9, 9)
    np.testing.assert_array_equal(full.run.x[0], [0.9, 0.8])
    for part, values in zip(full.data, data, strict=True):
        np.testing.assert_array_equal(part, values)
    cut.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:6]))
    resumed = minimize(optimizer=optimizer, journal=cut)
    assert len(CALLS) == 4
    assert resumed.run.digest == full.run.digest
    np.testing.assert_array_equal(resumed.data.x, data[0])


@settings(max_examples=30, deadline=None)
@given(
    cut=st.integers(0, 2000),
    start=st.integers(0, 3),
    rows=st.integers(0, 4),
    shape=st.sampled_from([{"batch_size": 3}, {"workers": 3}, {}]),
    optimizer=st.sampled_from([Expectant, StatefulHill]),
)
def test_a_run_cut_at_any_byte_goes_on_as_if_nothing_had_happened(
    cut: int, start: int, rows: int, shape: dict[str, int], optimizer: Any
) -> None:
    """Whatever was given, in batches or by workers."""
    x, f, c = known()
    task = {"optimizer": optimizer, **shape}
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        data = (x[:rows], f[:rows], c[:rows])
        full = minimize(data=data, x0=x[12 - start :], journal=path, **task)
        raw = path.read_bytes()
        # The header has what was given; without it the call has to say it again.
        path.write_bytes(raw[: max(raw.index(b"\n") + 1, len(raw) - cut)])
        resumed = minimize(journal=path, **task)
        assert resumed.run.digest == full.run.digest
        assert (resumed.data is None) == (rows == 0)


@pytest.mark.parametrize("optimizer", ["cobyla", "cobyqa", "cma-es"])
def test_a_local_method_starts_at_the_best_of_the_data(optimizer: str) -> None:
    """Whatever it was told before it is asked: here the floor of the bowl."""
    data = np.array([[0.31, 0.3]]), np.array([1e-4]), np.array([[-0.11]])
    near = minimize(optimizer=optimizer, data=data, n_init=0, seed=1)
    far = minimize(optimizer=optimizer, n_init=0, seed=1)
    assert np.abs(near.run.x - 0.3).max(axis=1).mean() < np.abs(far.run.x - 0.3).max(axis=1).mean()
    assert not any((near.run.x == data[0]).all(axis=1))


def test_the_best_of_the_data_counts() -> None:
    """What the user came with is not lost; a target it meets ends the run before it begins."""
    data = np.array([[0.3, 0.3]]), np.array([0.0]), np.array([[-0.1]])
    result = minimize(data=data, optimizer="random-search")
    assert (result.fun, result.success, result.nfev) == (0.0, True, 9)
    at_once = minimize(data=data, stop_at=0.0)
    assert (at_once.fun, at_once.nfev, len(CALLS)) == (0.0, 0, 0)
    assert "stopped after 0 of 9" in at_once.message
    assert at_once.table()["status"] == ["data"]


def test_the_optimizer_is_told_once_before_the_design_and_read_only() -> None:
    """First how large the design is, then the data, then the design."""
    heard: list[int | str] = []

    class Listener(Expectant):
        def expect_design(self, n: int) -> None:
            heard.append("design")
            super().expect_design(n)

        def tell(self, x: Array, evaluation: Evaluation) -> None:
            heard.append(len(x))
            assert not any(array.flags.writeable for array in (x, *evaluation))
            super().tell(x, evaluation)

    minimize(optimizer=Listener, data=known(), budget=4)
    assert heard == ["design", 12, 1, 1, 1, 1]


def test_data_stand_in_for_the_design() -> None:
    """By default the design is as much smaller as there are data, but has all of x0."""
    assert minimize(n_init=None, budget=40).run.task.n_init == 10
    assert minimize(n_init=None, budget=40, data=known(4)).run.task.n_init == 6
    assert minimize(n_init=None, budget=40, data=known()).run.task.n_init == 0
    first = [[0.1, 0.2], [0.3, 0.4]]
    both = minimize(n_init=None, budget=40, data=known(), x0=first)
    assert both.run.task.n_init == 2
    np.testing.assert_array_equal(both.run.x[:2], first)


def test_a_journal_holds_what_was_given(tmp_path: Path) -> None:
    """Its values and, for the record, a digest; other data are another run."""
    path = tmp_path / "run.jsonl"
    data = known()
    minimize(data=data, x0=[0.5, 0.6], journal=path)
    contents = contents_of(path)
    np.testing.assert_array_equal(contents.header.given.points, data[0])  # type: ignore[union-attr]
    assert contents.header.given.first == [[0.5, 0.6]]  # type: ignore[union-attr]
    assert len(make_record(contents).facts["given"]) == 64
    for other in ({"data": known(5)}, {"x0": [0.1, 0.1]}):
        with pytest.raises(JournalError, match="begun with other data or x0"):
            minimize(journal=path, **other)
    plain = tmp_path / "plain.jsonl"
    minimize(journal=plain)
    assert b'"given"' not in plain.read_bytes()
    with pytest.raises(JournalError, match="begun with other data or x0"):
        minimize(journal=plain, data=data)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"first":[[0.5,0.6]]', b'"first":[[0.5]]'),
        (b'"objective":[0.0]', b'"objective":[]'),
        (b'"constraints":[[-0.1]]', b'"constraints":[[-0.1,1.0]]'),
    ],
)
def test_a_journal_whose_given_data_do_not_fit_is_damaged(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    """Line 1 is named."""
    path = tmp_path / "run.jsonl"
    minimize(data=([[0.3, 0.3]], [0.0], [[-0.1]]), x0=[0.5, 0.6], journal=path)
    path.write_bytes(rechained(path.read_bytes().replace(before, after, 1)))
    with pytest.raises(JournalDamaged, match=r"line 1: .*given"):
        read_journal(path)


def test_a_larger_budget_goes_on_with_the_data(tmp_path: Path) -> None:
    """They need not be given again."""
    path = tmp_path / "run.jsonl"
    short = minimize(data=known(), journal=path, optimizer="cobyla")
    long = minimize(journal=path, optimizer="cobyla", budget=15)
    assert len(CALLS) == 6
    np.testing.assert_array_equal(long.run.x[:9], short.run.x)


def test_one_run_can_be_the_data_of_the_next() -> None:
    """What failed is left out."""

    def fun(x: Array) -> Array:
        return np.where(x[:, 0] > 0.5, np.nan, x[:, 0])

    first = cbo.minimize(fun, [0], [1], budget=20, optimizer="random-search")
    handed_on = first.as_data()
    assert len(handed_on.x) == 20 - first.failures["nonfinite"]
    second = cbo.minimize(fun, [0], [1], budget=20, optimizer="cobyla", data=handed_on)
    assert second.fun <= first.fun


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"x0": [0.5, 1.5]}, InvalidPoint, r"x0 must lie inside.*height = 1.5 in row 0.*\[0, 1\]"),
        ({"x0": [0.5, np.nan]}, InvalidPoint, "height = nan"),
        ({"x0": [0.5]}, InvalidPoint, r"shape \(n, 2\), got shape \(1,\)"),
        ({"x0": "here"}, InvalidPoint, "must be points of numbers"),
        ({"x0": [[0.1, 0.2]] * 10}, InvalidTask, "more than the budget of 9"),
        ({"x0": [[0.1, 0.2]] * 4}, InvalidTask, "n_init=3"),
        ({"x0": [0.1, 0.2], "n_init": np.int64(0)}, InvalidTask, "n_init=0"),
        ({"x0": np.ma.masked_array([0.1, 0.2], [False, True])}, InvalidPoint, "height = nan"),
        ({"x0": [0.5, 0.5], "integer": ["width"]}, InvalidPoint, "x0: variable 0 takes whole"),
        ({"data": known()[:2]}, InvalidData, r"\(X, F, C\) of shapes .* got 2 parts"),
        ({"data": 3}, InvalidData, "got int"),
        ({"data": ([[2, 0.1]], [1], [[1]])}, InvalidPoint, "X of data.*width = 2.*1 of 1 points"),
        ({"data": ([[0, 0]], [1, 2], [[1]])}, InvalidData, r"F of data must have shape \(1,\)"),
        ({"data": ([[0, 0]], [1], [1])}, InvalidData, r"C of data must have shape \(1, 1\)"),
        ({"data": ([[0, 0]], [np.nan], [[1]])}, InvalidData, "F of data must be finite.*in row 0"),
        ({"data": ([[0, 0]], [1], [[np.inf]])}, InvalidData, "C of data must be finite"),
        (
            {"data": ([[0, 0]], np.ma.masked_array([1.0], [True]), [[1]])},
            InvalidData,
            "F of data must be finite",
        ),
        ({"data": ([[0, 0]], ["a"], [[1]])}, InvalidData, "F of data must be numbers"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_evaluation(
    tmp_path: Path, wrong: dict[str, Any], error: type[Exception], words: str
) -> None:
    """One typed error that names what was given; no journal is begun."""
    path = tmp_path / "run.jsonl"
    with pytest.raises(error, match=words):
        minimize(journal=path, names=["width", "height"], **wrong)
    assert (CALLS, path.exists()) == ([], False)


def test_data_of_a_filtered_table_are_taken_by_their_place() -> None:
    """Whatever their rows are called; what is not finite is named by its place."""
    data = known()
    named = minimize(data=tuple(Column(part) for part in data))
    assert named.run.digest == minimize(data=data).run.digest
    data[1][2], data[2][3] = np.nan, np.inf
    for part, words in ((1, "F of data must be finite, got nan in row 2"), (2, r"got \[inf\] in")):
        given = [Column(values) for values in known()]
        given[part] = Column(data[part])
        with pytest.raises(InvalidData, match=words):
            minimize(data=tuple(given))
