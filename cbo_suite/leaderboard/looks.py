"""The look of an optimizer: one colour and one dash, the same on all pages and in all figures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

# The hues of Okabe and Ito (2008), which every kind of colour vision tells apart, and a grey. On
# either paper each has a contrast of at least 3. The site's sheet has the same as --series-1, ...
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#008a64",
    "#bb5f97",
    "#3a97cc",
    "#b07a00",
    "#111820",
    "#77808c",
)
DARK_COLOURS = (
    "#4fa8e0",
    "#ff8a4a",
    "#2fc79a",
    "#e39ac6",
    "#8fd0f7",
    "#f0b840",
    "#f2f5f8",
    "#98a2ae",
)
# Lengths of lines and gaps in turn, in units of half the width of a line; the first is solid.
DASHES: tuple[tuple[int, ...], ...] = (
    (1, 0),
    (6, 3),
    (2, 2),
    (9, 3, 2, 3),
    (12, 4),
    (5, 2, 2, 2, 2, 2),
    (3, 5),
    (14, 3, 5, 3),
    (2, 5),
    (9, 2, 2, 2, 2, 2, 2, 2),
    (6, 7),
    (16, 6),
)
# Whom readers look for: who takes part in the SCBO paper, and the least that is to be beaten.
PAPER_METHODS = ("scbo", "cei", "pesc", "slack", "cma-es", "cobyla", "random-search")
# What the ids of one's own optimizers begin with where they stand beside published ones.
OWN_MARK = "mine:"
# Place of the colour of methods; their variants have it too, with a dash of their own.
_COLOUR_OF = {
    "scbo": 0,
    "cei": 1,
    "pesc": 2,
    "slack": 3,
    "cobyla": 4,
    "cma-es": 5,
    "random-search": 6,
    "cmes-ibo": 7,
    "cobyqa": 4,
    "sobol-search": 6,
}
# Places of dashes that are taken for good, so that no other name moves them.
_DASH_OF = {
    **dict.fromkeys([*PAPER_METHODS, "cmes-ibo"], 0),
    "cobyqa": 1,
    "sobol-search": 1,
    "cma-es-violation": 1,
    "cma-es-al": 2,
    "cei-transformed": 1,
    "slack-transformed": 1,
    "pesc-transformed": 1,
}
# Looks that are taken for good. Ten variants of SCBO in its colour could not be told apart: theirs
# says how points are chosen (in a trust region or not, by Thompson sampling or expected
# improvement), their dash what the models see, long with the transforms and dots without; other
# parts have colours of their own. Then methods that came later.
_LOOK_OF = {
    "scbo-ei": (1, 4),
    "scbo-global": (2, 4),
    "scbo-ei-global": (3, 4),
    "scbo-untransformed": (0, 2),
    "scbo-untransformed-ei": (1, 2),
    "scbo-untransformed-global": (2, 2),
    "scbo-untransformed-ei-global": (3, 2),
    "scbo-copula-only": (6, 3),
    "scbo-bilog-only": (5, 3),
    "scbo-no-perturbation": (7, 3),
    "furbo": (5, 4),
    "botorch-logcei": (1, 3),
    "optuna-gp": (4, 4),
    "optuna-tpe": (4, 2),
    "egobox": (2, 3),
    "bayesqp": (3, 3),
    "nomad": (6, 4),
    "isres": (7, 4),
}


class Look(NamedTuple):
    """Places of a colour in `COLOURS` and of a dash in `DASHES`.

    Attributes:
        colour: Place of the colour.
        dash: Place of the dash.
    """

    colour: int
    dash: int


def looks_of(optimizers: Iterable[str]) -> dict[str, Look]:
    """Give each optimizer its look.

    Optimizers that the suite knows have theirs for good. That of another follows from its name;
    among those given, the first in the alphabet keeps it and others take the next that is free.
    """
    found: dict[str, Look] = {}
    taken: set[Look] = set()
    fixed = {*_DASH_OF, *_LOOK_OF}
    for name in sorted(set(optimizers), key=lambda name: (name not in fixed, name)):
        wanted = _wanted(name)
        look = next((look for look in wanted if look not in taken), wanted[0])
        taken.add(look)
        found[name] = look
    return found


def _wanted(name: str) -> list[Look]:
    """Return the looks that an optimizer may have, the one that it should have first."""
    if name in _LOOK_OF:
        return [Look(*_LOOK_OF[name])]
    published = name.removeprefix(OWN_MARK)
    known = [method for method in _COLOUR_OF if f"{published}-".startswith(f"{method}-")]
    colours = [_COLOUR_OF[max(known, key=len)]] if known else list(range(len(COLOURS)))
    if name in _DASH_OF:
        return [Look(colours[0], _DASH_OF[name])]
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    # Solid lines are those of the methods above.
    looks = [Look(*places) for places in product(colours, range(1, len(DASHES)))]
    start = digest % len(looks)
    return looks[start:] + looks[:start]


def shown_first(methods: Iterable[str], leaders: int) -> list[str]:
    """Choose whom a chart shows before the reader chooses: the paper's, the leaders, one's own.

    Args:
        methods: Those that may be shown, the best first; without variants.
        leaders: How many of the first are shown whoever they are.
    """
    return [
        name
        for i, name in enumerate(methods)
        if i < leaders or name in PAPER_METHODS or name.startswith(OWN_MARK)
    ]
