"""Tracks: the lists of problems that optimizers are ranked over.

A ranking over whatever problems happen to be on the board would move with every problem that is
added. A track is therefore a frozen list: what stands here never changes. Another list is a track
of a new version, added below; the old one stays, and so does its ranking. Nothing outside this
file can join a track, whatever is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# An optimizer is ranked in a track with at least this many seeds on each of its problems.
LEAST_RUNS = 10


class Track(NamedTuple):
    """A frozen list of problems.

    Attributes:
        id: Its versioned id.
        title: One line that says what its problems have in common.
        families: Ids of the problems by family; each family counts once.
        in_overall: Whether the overall ranking is over this track, among others.
    """

    id: str
    title: str
    families: tuple[tuple[str, ...], ...]
    in_overall: bool = True

    @property
    def problems(self) -> tuple[str, ...]:
        """Ids of all its problems, in the order of the list."""
        return tuple(problem for members in self.families for problem in members)


TRACKS: tuple[Track, ...] = (
    Track(
        "small-v1",
        "At most ten variables, one point at a time",
        (
            ("toy-2d-v1",),
            ("rosenbrock-5d-v1",),
            ("tension-string-3d-v1",),
            ("pressure-vessel-4d-v1",),
            ("welded-beam-4d-v1",),
            ("speed-reducer-7d-v1",),
            ("ackley-10d-v1",),
        ),
    ),
    Track(
        "large-v1",
        "At least a thousand evaluations in batches, up to 124 variables",
        (
            ("keane-30d-v1",),
            ("lunar-lander-m10-v1", "lunar-lander-m30-v1", "lunar-lander-m50-v1"),
            ("rover-60d-v1",),
            ("vehicle-124d-v1",),
        ),
    ),
    # On its own, because it needs an executable that the suite may not ship.
    Track(
        "mopta08-v1",
        "MOPTA08, whose executable everybody has to get for themselves",
        (("mopta08-124d-v1",),),
        in_overall=False,
    ),
)


def problem_weights(families: Iterable[Sequence[str]]) -> dict[str, float]:
    """Weigh problems so that families count alike, and the problems of a family too.

    Args:
        families: Ids of problems by family; an empty family does not count.

    Returns:
        Problem to weight, in the order given; the weights add up to one.
    """
    present = [members for members in families if members]
    return {
        problem: 1 / (len(present) * len(members)) for members in present for problem in members
    }
