"""The devices that models are tested on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch

from tests.optimizers.devices import Card, Valueless

CUDA = pytest.param(
    "cuda",
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
    ],
)


@pytest.fixture(params=["cpu", "meta", CUDA])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every device, for what needs no values; on "meta" there are none."""
    name: str = request.param
    if name == "meta":
        with Valueless():
            yield name
    else:
        yield name


@pytest.fixture(params=["cpu", CUDA])
def number_device(request: pytest.FixtureRequest) -> str:
    """Every device that has numbers."""
    name: str = request.param
    return name


@pytest.fixture
def default_device(number_device: str) -> Iterator[str]:
    """Every device that has numbers, where the tensors of a test are made by default."""
    # On the CPU it would do nothing but slow down every call.
    with nullcontext() if number_device == "cpu" else torch.device(number_device):
        yield number_device


@pytest.fixture(params=["pretended", CUDA])
def card(request: pytest.FixtureRequest) -> Card:
    """A graphics card, and ordinary memory that stands for one."""
    return Card(request.param == "pretended")
