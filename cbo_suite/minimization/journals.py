"""Whether the journal of an earlier call is one to go on from: is it of the same function?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cbo_suite.files import move_aside
from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.harness.user_function import (
    NAME,
    ORDER,
    SOURCE,
    OnChange,
    UserProblem,
    find_change,
    refuse_change,
    refuse_other_order,
)
from cbo_suite.journal import Contents, read_journal


def known_journal(
    path: Path,
    problem: UserProblem,
    facts: dict[str, str],
    on_change: OnChange,
    recheck: bool,
) -> tuple[Contents | None, dict[str, str]]:
    """Look whether a journal is of this function.

    Returns:
        What it holds, None if a new one is begun; and the facts of the function that go into it.

    Raises:
        JournalError: It was made with another function, and nothing else was asked for; or its
            constraints are in another order.
    """
    if not path.is_file():
        return None, facts
    contents = read_journal(path)
    if contents is None:
        return None, facts
    if not contents.batches:
        # Nothing was evaluated: there is nothing to contradict.
        return contents, facts
    change = find_change(contents.header, facts)
    if not change and recheck:
        change = _other_value(contents, problem)
    if not change or on_change == "keep":
        refuse_other_order(path, contents.header, facts)
        recorded = contents.header.facts
        return contents, {
            name: recorded[name] for name in (NAME, SOURCE, ORDER) if name in recorded
        }
    if on_change == "error":
        raise refuse_change(path, change)
    move_aside(path, "before")
    return None, facts


def _other_value(contents: Contents, problem: UserProblem) -> str:
    """Evaluate one recorded point again; say how it differs, "" if it does not."""
    for batch in contents.batches:
        for row, status in enumerate(batch.status):
            if status != "ok":
                continue
            x = batch.points[row : row + 1]
            before = batch.evaluation(problem.space.num_constraints)
            now = evaluate_points(problem, x).evaluation
            same = np.array_equal(now.objective[0], before.objective[row]) and np.array_equal(
                now.constraints[0], before.constraints[row]
            )
            return "" if same else f"at {x[0].tolist()} the function gives other values than then"
    return ""
