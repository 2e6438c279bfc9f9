"""Which runs the reproduction of the paper consists of."""

from __future__ import annotations

from itertools import groupby

import pytest

from cbo_suite.errors import UnknownId
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.paper import ARTEFACTS, STAGES, pair_tasks, stage_tasks
from cbo_suite.paper.experiments import MOPTA08, num_seeds
from cbo_suite.problems import PROBLEMS
from cbo_suite.scoring.tracks import LEAST_RUNS, TRACKS
from cbo_suite.tasks import METHODS, SCALABLE, get_suite


def test_everything_of_the_suite_but_mopta08_is_run() -> None:
    """The suite `paper` names the pairs; the stages run all of them, at the same protocol."""
    planned = set(stage_tasks())
    pairs = {(task.problem, task.optimizer) for task in planned}
    wanted = [task for task in get_suite("paper").tasks() if task.problem != MOPTA08]
    assert {(task.problem, task.optimizer) for task in wanted} < pairs
    left = [task for task in wanted if task not in planned]
    assert {num_seeds(task.problem, task.optimizer) for task in left} == {10}
    assert {task.seed for task in left} == set(range(10, 30))
    assert MOPTA08 not in {task.problem for task in planned}
    assert len(stage_tasks(["mopta08"])) == 150
    assert {task.problem for task in planned} <= PROBLEMS.keys()
    assert {task.optimizer for task in planned} <= OPTIMIZERS.keys()


def test_the_paper_s_methods_are_ranked_in_the_tracks() -> None:
    """All seven on the small track, the scalable five on the large one."""
    planned = stage_tasks()
    for track, methods in zip(TRACKS, (METHODS, SCALABLE), strict=False):
        for problem in track.problems:
            for method in methods:
                seeds = [t.seed for t in planned if (t.problem, t.optimizer) == (problem, method)]
                assert len(seeds) >= LEAST_RUNS, (problem, method)


def test_the_order_of_work() -> None:
    """Problem by problem; ten seeds of every method before any has twenty."""
    tasks = stage_tasks()
    assert len(set(tasks)) == len(tasks)
    small = stage_tasks(["small"])
    assert tasks[: len(small)] == small
    problems = [problem for problem, _ in groupby(small, key=lambda task: task.problem)]
    assert len(problems) == 5
    first = [task for task in small if task.problem == problems[0]]
    blocks = [(task.optimizer, task.seed // 10) for task in first]
    rows = [row for row, _ in groupby(blocks)]
    assert rows == [(method, block) for block in range(3) for method in METHODS]
    assert [task.seed for task in first[:10]] == list(range(10))


def test_every_artefact_has_its_runs_in_the_stages() -> None:
    """Eleven artefacts; each is made of planned runs or of a file of measurements."""
    everything = set(stage_tasks([stage.id for stage in STAGES]))
    assert {artefact.number for artefact in ARTEFACTS} == set(range(1, 12))
    for artefact in ARTEFACTS:
        tasks = pair_tasks(artefact.pairs)
        assert set(tasks) <= everything
        assert tasks or artefact.measurement


def test_an_unknown_stage_is_named() -> None:
    """The error lists the stages that there are."""
    with pytest.raises(UnknownId, match="unknown stage 'smal': choose one of small, keane"):
        stage_tasks(["smal"])
