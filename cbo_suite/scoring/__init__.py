"""Scores: pure functions from records and references to the board. They run nothing."""

from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import Reference, load_references
from cbo_suite.scoring.runs import anytime, best_so_far, default_value, paper_curve, regret
from cbo_suite.scoring.tracks import TRACKS, Track

__all__ = [
    "TRACKS",
    "Reference",
    "Track",
    "anytime",
    "best_so_far",
    "default_value",
    "load_references",
    "make_board",
    "paper_curve",
    "regret",
]
