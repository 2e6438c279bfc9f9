"""The problems of the suite, one problem or family per file.

This table is all that listing needs: it imports none of the problems. A row never changes once
published; a change of any value, bound or constant is a new version in a new row.
"""

from __future__ import annotations

from cbo_suite.protocols import ProblemEntry

PROBLEMS: dict[str, ProblemEntry] = {}
