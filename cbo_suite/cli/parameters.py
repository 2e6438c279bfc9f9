"""How words on the command line are read: lists, seeds, times, sizes, shards and salts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

# The type takes a parameter from click 8.3 on.
if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]?)", re.IGNORECASE)


class _Reader(_ParamType):
    """A kind of parameter that a function reads."""

    def __init__(self, name: str, read: Callable[[str], Any], hint: str) -> None:
        """Keep the name in the help, the function, and what to write instead of nonsense."""
        self.name, self._read, self._hint = name, read, hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text of a parameter, or say how it is written."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError:
            self.fail(f"got {value!r}; write {self._hint}", param, ctx)


class Shard(NamedTuple):
    """Part `part` of `parts`."""

    part: int
    parts: int


def _names(text: str) -> list[str]:
    """Read names with commas between them."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(text)
    return list(dict.fromkeys(names))


def _seeds(text: str) -> list[int]:
    """Read numbers and ranges with commas between them."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin = _whole(first)
        end = _whole(last) if dash else begin
        if end < begin or end - begin > 10**6:
            raise ValueError(text)
        seeds |= dict.fromkeys(range(begin, end + 1))
    return list(seeds)


def _whole(text: str) -> int:
    """Read a whole number."""
    if not re.fullmatch(r"\s*[0-9]{1,18}\s*", text):
        raise ValueError(text)
    return int(text)


def _amount(units: dict[str, int], default: int) -> Callable[[str], float]:
    """Make a reader of positive amounts with a unit of one letter."""

    def read(text: str) -> float:
        match = _AMOUNT.fullmatch(text.strip())
        if match is None or float(match[1]) == 0:
            raise ValueError(text)
        unit = match[2].lower()
        if unit and unit not in units:
            raise ValueError(text)
        return float(match[1]) * (units[unit] if unit else default)

    return read


def _shard(text: str) -> Shard:
    """Read i/n."""
    part, _, parts = text.partition("/")
    shard = Shard(_whole(part), _whole(parts))
    if not 1 <= shard.part <= shard.parts:
        raise ValueError(text)
    return shard


def _hexadecimal(text: str) -> str:
    """Read hexadecimal digits."""
    if not re.fullmatch(r"[0-9a-f]{1,64}", text):
        raise ValueError(text)
    return text


def _setting(text: str) -> tuple[str, str]:
    """Read name=value."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise ValueError(text)
    return name.strip(), value.strip()


def _option(text: str) -> tuple[str, Any]:
    """Read name=value, where the value is JSON if it can be, else text."""
    name, value = _setting(text)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _numbers(text: str) -> list[float]:
    """Read numbers with commas between them."""
    return [float(part) for part in text.split(",")]


def _indices(text: str) -> list[int]:
    """Read whole numbers with commas between them."""
    return [_whole(part) for part in text.split(",")]


NAMES = _Reader("A,B,...", _names, "ids with commas between them, such as scbo,cobyla")
SEEDS = _Reader("0-29", _seeds, "numbers and ranges, such as 0-29 or 0,3,5-7")
TIME = _Reader("TIME", _amount(_SECONDS, 1), "seconds, or a number with s, m, h or d, such as 90m")
SIZE = _Reader("SIZE", _amount(_BYTES, 1), "bytes, or a number with K, M, G or T, such as 2G")
SHARD = _Reader("I/N", _shard, "i/n with i from 1 to n, such as 2/8")
SETTING = _Reader("NAME=VALUE", _setting, "name=value, such as partition=short")
OPTION = _Reader("NAME=VALUE", _option, "name=value, such as delta=0.1 or acquisition=ei")
NUMBERS = _Reader("A,B,...", _numbers, "numbers with commas between them, such as 0,-1.5,1e-3")
INDICES = _Reader("I,J,...", _indices, "places of variables, counted from 0, such as 0,2")
HEX = _Reader("HEX", _hexadecimal, "the digits 0-9 and a-f that were printed, such as 5eed")
