"""MOPTA08: the mass of a vehicle under 68 performance constraints, through its executable.

The problem of [Jones2008]: x in [0, 1]^124 (gauges, materials and shapes, scaled), minimise the
mass where 68 normalised constraints of crash, stiffness and vibration models are at most zero. It
exists as an executable that reads `input.txt` (124 numbers, one a line) and writes `output.txt`
(objective and 68 constraints, one a line); a call takes about 0.16 s and is deterministic. The
executable is third-party software which the user supplies, see `mopta08_install`.

References:
    [Jones2008] D. R. Jones. Large-scale multi-disciplinary mass optimization in the auto industry.
        Presented at the MOPTA 2008 conference, 2008.

Version history:
    v1: First version.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from cbo_suite.errors import InvalidTask, PartialEvaluation
from cbo_suite.problems.base import Problem
from cbo_suite.problems.mopta08.executable import evaluate_points
from cbo_suite.problems.mopta08.install import (
    NUM_VALUES,
    TIMEOUT,
    ReferencePoint,
    locate,
)
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space
from cbo_suite.system import cores


class Mopta08(Problem):
    """The genuine MOPTA08 through the user's executable; points of a batch run side by side.

    Attributes:
        executable: Path and SHA-256 of the executable; checked again before every batch.
        executable_sha256: The SHA-256, for the records of runs.
        timeout: Seconds after which the evaluation of a point is killed.
        workers: How many points are evaluated at a time.
    """

    cheap: ClassVar[bool] = False

    def __init__(
        self,
        *,
        timeout: float = TIMEOUT,
        workers: int | None = None,
        references: Sequence[ReferencePoint] | None = None,
    ) -> None:
        """Find the executable and check it.

        Args:
            timeout: Seconds after which the evaluation of a point is killed.
            workers: How many points are evaluated at a time, by default one per core.
            references: Points that an executable named by CBO_MOPTA08 must reproduce, those of
                the genuine MOPTA08 by default.

        Raises:
            MissingExecutable: None is installed and CBO_MOPTA08 names none.
            WrongExecutable: It is not MOPTA08, or has changed since it was installed.
        """
        if not 0.0 < timeout <= 86400.0:
            raise InvalidTask(f"timeout must be between 0 and 86400 seconds, got {timeout!r}")
        if workers is not None and workers < 1:
            raise InvalidTask(f"workers must be at least 1, got {workers!r}")
        self.id = "mopta08-124d-v1"
        self.space = Space(np.zeros(124), np.ones(124), num_constraints=68)
        self.timeout = float(timeout)
        self.workers = workers or cores()
        self.executable = locate(references)
        path = Path(__file__).with_name("best_known.json")
        known = json.loads(path.read_text(encoding="utf-8"))
        self.best_known = BestKnown(
            known["objective"],
            np.array(known["x"]),
            "genuine executable, problems/mopta08/best_known.json",
        )

    @property
    def executable_sha256(self) -> str:
        """SHA-256 of the executable."""
        return self.executable.sha256

    def _evaluate(self, x: Array) -> Evaluation:
        """Call the executable once for each point.

        Raises:
            PartialEvaluation: Some points failed; the error carries the values of the others.
            WrongExecutable: The executable has changed.
        """
        self.executable.verify()
        values, failures = evaluate_points(
            self.executable.path, x, NUM_VALUES, timeout=self.timeout, workers=self.workers
        )
        evaluation = Evaluation(values[:, 0].copy(), values[:, 1:].copy())
        if failures:
            first = next(iter(failures.values()))
            raise PartialEvaluation(
                f"{len(failures)} of {len(x)} evaluations of {self.id} failed, the first: {first}",
                evaluation,
                failures,
            )
        return evaluation
