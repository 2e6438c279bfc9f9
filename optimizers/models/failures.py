"""Where evaluations fail: one more model, of results that worked (-1) and that failed (+1).

Other models take a failed result for the worst objective and the largest violation that were seen
(`transforms`), which keeps optimizers away. This one says how probable a failure is.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cbo_suite.optimizers.models.fit import NOISE_FREE
from cbo_suite.optimizers.models.improvement import SMALLEST_DEVIATION
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform
from cbo_suite.protocols import Array, BoolArray, Evaluation


def failed_rows(evaluation: Evaluation) -> BoolArray:
    """Which of n results have a value that is not a finite number, shape `(n,)`."""
    failed: BoolArray = np.isinf(evaluation.violation)
    return failed


class Failures:
    """The probability that an evaluation works, by a model of those that did and did not."""

    def __init__(self, x: Array, failed: BoolArray) -> None:
        """Fit the model to results at points `(n, d)` of the unit cube.

        While all of them worked, or all failed, there is nothing to learn: everything may work.
        """
        self._model = None
        if failed.any() and not failed.all():
            like = torch.zeros((), dtype=torch.float64)
            surrogate = Surrogate(x.shape[1], 0, NOISE_FREE, Transform(False, False), like)
            nothing = np.empty((len(x), 0))
            self._model = surrogate.update(x, np.where(failed, 1.0, -1.0), nothing)

    def log_success(self, points: Tensor) -> Tensor:
        """Log of the probability at points `(p, d)` of the unit cube, shape `(p,)`."""
        if self._model is None:
            return torch.zeros_like(points[:, 0])
        mean, deviation = (torch.from_numpy(part[0]) for part in self._model.predict(points))
        log_probability: Tensor = torch.special.log_ndtr(
            -mean / deviation.clamp_min(SMALLEST_DEVIATION)
        )
        return log_probability
