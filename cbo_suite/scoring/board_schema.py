"""The format of `scores.json` as a JSON schema, with what the fields mean."""

from __future__ import annotations

import inspect
import re
from typing import Any

import msgspec

from cbo_suite.scoring import board

_ATTRIBUTE = re.compile(r"^ {4}(\w+): ((?:.|\n(?! {4}\w|\S|$))*)", re.M)


def board_schema() -> dict[str, Any]:
    """Return the schema of a board; what the docstrings say of a field is its description."""
    schema: dict[str, Any] = msgspec.json.schema(board.Board)
    for name, definition in schema["$defs"].items():
        text = inspect.getdoc(getattr(board, name)) or ""
        said, _, attributes = text.partition("\n\nAttributes:\n")
        definition["description"] = _in_json(said)
        for field, meaning in _ATTRIBUTE.findall(attributes):
            definition["properties"][field]["description"] = _in_json(meaning)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "scores.json of cbo-suite",
        **schema,
    }


def _in_json(text: str) -> str:
    """Write what a docstring says in one line, for readers of JSON."""
    return re.sub(r"\bNone\b", "null", " ".join(text.split()).replace("`", ""))
