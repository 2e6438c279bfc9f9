"""Where models are computed, and in which precision."""

from __future__ import annotations

import torch
from torch import Tensor

from cbo_suite.errors import InvalidTask


def sample_tensor(device: str, dtype: str = "float64") -> Tensor:
    """A tensor of shape `()` that all tensors of the models are like.

    Args:
        device: Such as "cpu" or "cuda".
        dtype: "float64" or "float32".

    Raises:
        InvalidTask: There is no such device here, or the precision is none of these.
    """
    if dtype not in ("float64", "float32"):
        raise InvalidTask(f'dtype must be "float64" or "float32", got {dtype!r}')
    try:
        sample = torch.zeros((), device=device, dtype=getattr(torch, dtype))
        # Some devices have no values, and some cannot do what they say.
        float(sample + 1.0)
    except (AssertionError, RuntimeError, TypeError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise InvalidTask(f"device {device!r} cannot be used here: {reason}") from error
    return sample
