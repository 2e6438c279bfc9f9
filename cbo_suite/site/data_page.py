"""The data of the site: the schema of `scores.json`, and the curves of each problem as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any, NamedTuple

import msgspec

from cbo_suite.scoring.board import Curves, ProblemBoard
from cbo_suite.scoring.board_schema import board_schema

SCHEMA = "scores.schema.json"


class Field(NamedTuple):
    """A field of a part of `scores.json`: its name, its type in words, and what it means."""

    name: str
    type: str
    meaning: str


class Part(NamedTuple):
    """A part of `scores.json`.

    Attributes:
        name: What the schema calls it.
        meaning: What it is.
        fields: Its fields.
    """

    name: str
    meaning: str
    fields: list[Field]


def encode_schema() -> bytes:
    """Write the schema of `scores.json`."""
    return msgspec.json.format(msgspec.json.encode(board_schema()), indent=1) + b"\n"


def parts() -> list[Part]:
    """Describe the parts of `scores.json`, as its schema does."""
    return [
        Part(
            name,
            definition["description"],
            [
                Field(field, _type(about), about["description"])
                for field, about in definition["properties"].items()
            ],
        )
        for name, definition in board_schema()["$defs"].items()
    ]


def _type(about: dict[str, Any]) -> str:
    """Write the type of a field in words."""
    if "anyOf" in about:
        return " or ".join(_type(one) for one in about["anyOf"])
    if "enum" in about:
        return " or ".join(str(value) for value in about["enum"])
    if "$ref" in about:
        return str(about["$ref"]).rpartition("/")[2]
    if about["type"] == "array":
        one = about.get("prefixItems", [about["items"]])[0]
        return f"list of {_type(one)}"
    return str(about["type"])


def curves_csv(problem: ProblemBoard) -> bytes:
    """Write the curves of a problem, one line for each optimizer and number of evaluations."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    fields = Curves.__struct_fields__
    writer.writerow(["optimizer", "evaluations", *fields])
    for row in problem.rows:
        columns = [getattr(row.curves, field) for field in fields]
        for evaluations, *values in zip(problem.evaluations, *columns, strict=True):
            writer.writerow([row.optimizer, evaluations, *values])
    return text.getvalue().encode()
