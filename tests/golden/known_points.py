"""Files of best known points, which several scripts write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_known_points(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write points by problem, each with `objective` and `x`; better ones in the file stay."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for id_, point in found.items():
        if id_ not in known or point["objective"] < known[id_]["objective"]:
            known[id_] = dict(point)
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
