"""Devices for tests where there is no graphics card.

`Pretended` lets ordinary memory stand for a graphics card, with all values; `Valueless` answers
what code asks about values that torch's device `meta` does not have. Both watch every call of torch
by the rules of docs/gpu.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from cbo_suite.protocols import Array

# What may happen to a tensor in ordinary memory: it goes to the device, or to NumPy.
CROSSING = ("to", "as_tensor", "copy_")
LEAVING = ("numpy", "__array__")
# The frequencies of random functions are made in ordinary memory, as all random numbers are.
ON_HOST = ("linalg_qr",)
Call = Callable[..., Any]


class WrongDevice(AssertionError):
    """A tensor is not where it belongs."""


class Pretended(TorchFunctionMode):
    """Ordinary memory stands for the device "cuda": what does not name it is not there.

    Tensors that were there before are taken to be in ordinary memory. There, nothing is computed
    and nothing made but by NumPy; it goes to the device at once.
    """

    def __init__(self) -> None:
        """Begin with nothing on the device."""
        super().__init__()
        self._there: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def __contains__(self, tensor: Tensor) -> bool:
        """Whether a tensor is on the device."""
        return tensor in self._there

    def __torch_function__(
        self, func: Call, types: object, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Carry out a call in ordinary memory, and note where its results are."""
        if func == Tensor.device.__get__:
            return torch.device("cuda" if args[0] in self else "cpu")
        kwargs = dict(kwargs or {})
        there = self._lands(func, args, kwargs)
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        before = {id(leaf) for leaf in _tensors((args, kwargs))}

        def place(result: Any) -> Any:
            if not isinstance(result, Tensor) or (result in self) == there:
                return result
            # What crosses is a copy.
            result = result.clone() if id(result) in before else result
            if there:
                self._there[result] = True
            return result

        ordinary = ["cpu" if _is_device(argument) else argument for argument in args]
        return tree_map(place, func(*ordinary, **kwargs))

    def _lands(self, func: Call, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Whether results of a call are on the device."""
        name, given = func.__name__, _tensors((args, kwargs))
        places = {tensor in self for tensor in given}
        if name in LEAVING and True in places:
            raise WrongDevice(f"{name} of a tensor that is not in ordinary memory: .cpu() first")
        if name == "cpu":
            return False
        if kwargs.get("device") is not None:
            return torch.device(kwargs["device"]).type == "cuda"
        if name == "to" and len(given) == 1:
            named = [argument for argument in args if _is_device(argument)]
            return torch.device(named[0]).type == "cuda" if named else places.pop()
        if name in CROSSING and given:
            return (given[-1] if name == "to" else given[0]) in self
        if places == {True}:
            return True
        if not places and name != "as_tensor":
            raise WrongDevice(f"{name} makes a tensor without saying on which device")
        if True in places:
            raise WrongDevice(f"{name} of tensors on different devices")
        if places and name not in LEAVING + ON_HOST and not name.startswith("__"):
            raise WrongDevice(f"{name} is computed in ordinary memory, not on the device")
        return False


class Card(NamedTuple):
    """The device "cuda", or ordinary memory that stands for it.

    Attributes:
        is_pretended: Whether it is the latter.
    """

    is_pretended: bool

    def use(self) -> Pretended | nullcontext[None]:
        """Have the device there, in a `with` statement."""
        return Pretended() if self.is_pretended else nullcontext()

    def check(self, points: Callable[[str], Array]) -> Array:
        """Compute points `(n, d)` by models on the device and on the CPU, and compare them.

        Ordinary memory gives the same bits. A card rounds otherwise, which may lead to others.
        """
        with self.use():
            found = points("cuda")
        expected = points("cpu")
        assert found.shape == expected.shape
        if self.is_pretended:
            np.testing.assert_array_equal(found, expected)
        return found


class Valueless(TorchFunctionMode):
    """On the device "meta", no test of values is true, every number is 1 and masks keep all.

    Tensors of different devices never meet, not even where torch lets them.
    """

    def __torch_function__(
        self, func: Call, types: object, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Answer what asks for values, and carry out everything else."""
        kwargs = kwargs or {}
        name, given = func.__name__, _tensors((args, kwargs))
        devices = {tensor.device.type for tensor in given}
        if name not in CROSSING and len(devices) > 1:
            raise WrongDevice(f"{name} of tensors on {' and '.join(sorted(devices))}")
        if devices == {"meta"}:
            if name == "__bool__":
                return False
            if name in ("__float__", "item"):
                return 1.0
            if name == "__getitem__" and isinstance(args[1], Tensor):
                args = args[0], _kept(args[1])
        return func(*args, **kwargs)


def _is_device(argument: object) -> bool:
    """Whether an argument names a device."""
    return isinstance(argument, (torch.device, str))


def _kept(index: Tensor) -> Tensor:
    """All rows instead of a mask."""
    if index.dtype != torch.bool:
        return index
    return torch.arange(index.shape[0], device=index.device)


def _tensors(tree: Any) -> list[Tensor]:
    """All tensors among the arguments of a call, in their order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
