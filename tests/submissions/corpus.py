"""Result files that must be refused: broken, oversized, dishonest or hostile.

Each entry of `CORPUS` makes one file in a folder of its own from the lines of an honest file, and
says how the complaint must name the field and the reason.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from cbo_suite.registry import make_problem

PROBLEM, OPTIMIZER = "toy-2d-v1", "random-search"
Lines = list[bytes]


class Case(NamedTuple):
    """A file that must be refused.

    Attributes:
        make: Writes the file into an empty folder and returns its path.
        message: Pattern of the complaint, from the field on.
    """

    make: Callable[[Path, Lines], Path]
    message: str


def place(folder: Path, problem: str = PROBLEM, name: str = f"{OPTIMIZER}.jsonl") -> Path:
    """Return where a file belongs, in a folder that is there."""
    (folder / problem).mkdir()
    return folder / problem / name


def content(change: Callable[[Lines], bytes], message: str) -> Case:
    """A file in its place with bytes made from the honest lines."""

    def make(folder: Path, lines: Lines) -> Path:
        path = place(folder)
        path.write_bytes(change(list(lines)))
        return path

    return Case(make, message)


def edited(change: Callable[[dict[str, Any]], object], message: str, line: int = 4) -> Case:
    """A file with one record changed as a Python object, the others left as they are."""

    def bytes_of(lines: Lines) -> bytes:
        record = json.loads(lines[line])
        change(record)
        lines[line] = msgspec.json.encode(record) + b"\n"
        return b"".join(lines)

    return content(bytes_of, rf"line {line + 1}, {message}")


def swapped(old: bytes, new: bytes, message: str, line: int = 4) -> Case:
    """A file with some bytes of one line replaced."""

    def bytes_of(lines: Lines) -> bytes:
        assert old in lines[line]
        lines[line] = lines[line].replace(old, new, 1)
        return b"".join(lines)

    return content(bytes_of, rf"line {line + 1}, {message}")


def named(name: str, message: str, problem: str = PROBLEM) -> Case:
    """An honest content in a file of another name."""

    def make(folder: Path, lines: Lines) -> Path:
        path = place(folder, problem, name)
        path.write_bytes(b"".join(lines))
        return path

    return Case(make, message)


def task(message: str, **changes: object) -> Case:
    """One record of another task."""
    return edited(lambda record: record["task"].update(changes), message)


def fields(message: str, **changes: object) -> Case:
    """One record with fields replaced."""
    return edited(lambda record: record.update(changes), message)


def read_doubles(text: str) -> np.ndarray:
    """Read the numbers of a field."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").copy()


def write_doubles(values: np.ndarray) -> str:
    """Write numbers as a field does."""
    return base64.b64encode(np.asarray(values, dtype="<f8").tobytes()).decode()


def points(change: Callable[[np.ndarray], object], message: str) -> Case:
    """One record whose points are changed in place."""

    def edit(record: dict[str, Any]) -> None:
        x = read_doubles(record["points"]).reshape(100, 2)
        change(x)
        record["points"] = write_doubles(x)

    return edited(edit, message)


def value(name: str, change: Callable[[float], float], message: str) -> Case:
    """One value of a record that is no improvement, and infeasible, changed."""

    def edit(record: dict[str, Any]) -> None:
        violation = read_doubles(record["violation"])
        values = read_doubles(record[name])
        worst = 50 + int(violation[50:].argmax())
        values[worst] = change(values[worst])
        record[name] = write_doubles(values)

    return edited(edit, message)


def renamed(lines: Lines, first: int, second: int) -> bytes:
    """Let two runs change their seeds: the easy way to choose which runs count."""
    for old, new in ((first, second), (second, first)):
        lines[old] = lines[old].replace(b'"seed":%d' % old, b'"seed":%d' % new, 1)
    lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def claimed(source: str | None, message: str) -> Case:
    """All records name another identity of the optimizer, or none."""

    def bytes_of(lines: Lines) -> bytes:
        claim = b"" if source is None else b'"optimizer-source":"%s",' % source.encode()
        return re.sub(rb'"optimizer-source":"[0-9a-f]{64}",', claim, b"".join(lines))

    return content(bytes_of, message)


def symlink(folder: Path, lines: Lines) -> Path:
    """Link to a file elsewhere."""
    target, path = folder / "elsewhere", place(folder)
    target.write_bytes(b"".join(lines))
    path.symlink_to(target)
    return path


def symlinked_folder(folder: Path, lines: Lines) -> Path:
    """Link the folder to another one."""
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / f"{OPTIMIZER}.jsonl").write_bytes(b"".join(lines))
    (folder / PROBLEM).symlink_to(folder / "elsewhere")
    return folder / PROBLEM / f"{OPTIMIZER}.jsonl"


def hardlink(folder: Path, lines: Lines) -> Path:
    """Give a file a second name."""
    path = place(folder)
    path.write_bytes(b"".join(lines))
    (folder / "elsewhere").hardlink_to(path)
    return path


def pipe(folder: Path, lines: Lines) -> Path:
    """Make a named pipe, which nobody writes to."""
    path = place(folder)
    os.mkfifo(path)
    return path


def subfolder(folder: Path, lines: Lines) -> Path:
    """Make a folder with the name of a file."""
    path = place(folder)
    path.mkdir()
    return path


def sparse(folder: Path, lines: Lines) -> Path:
    """Make a file of 300 MB that takes no space."""
    path = place(folder)
    with path.open("wb") as file:
        file.truncate(300 * 10**6)
    return path


def zipped(lines: Lines) -> bytes:
    """Pack the honest file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{PROBLEM}/{OPTIMIZER}.jsonl", b"".join(lines))
    return buffer.getvalue()


def grown(lines: Lines, count: int) -> bytes:
    """Let the first record have a very long list of objective values."""
    record = json.loads(lines[0])
    record["objective"] = record["violation"] = write_doubles(np.ones(count))
    return msgspec.json.encode(record) + b"\n"


BEST_KNOWN = make_problem(PROBLEM).best_known.x  # type: ignore[attr-defined]

CORPUS: dict[str, Case] = {
    "empty": content(lambda lines: b"", "field size: the file is empty"),
    "empty line": content(lambda lines: lines[0] + b"\n", "line 2, field line: "),
    "truncated": content(lambda lines: b"".join(lines)[:-3000], "field line: .*cut off"),
    "truncated line": swapped(b"}\n", b"\n", "field line: JSON is malformed|truncated"),
    "no last newline": content(lambda lines: b"".join(lines)[:-1], "line 10, field line: .*cut"),
    "byte order mark": content(lambda lines: b"\xef\xbb\xbf" + b"".join(lines), "field line"),
    "utf-16": content(lambda lines: b"".join(lines).decode().encode("utf-16"), "field line"),
    "latin-1": swapped(b'"options":{}', b'"options":{"\xe9":1}', "field "),
    "lone surrogate": swapped(b'"options":{}', b'"options":{"a":"\\ud800"}', "field "),
    "nan": swapped(b'"seconds_optimizer":', b'"seconds_optimizer":NaN,"a":', "field line: JSON"),
    "infinity": swapped(b'"seed":4', b'"seed":-Infinity', "field line: JSON is malformed"),
    "1e999": swapped(b'"seed":4', b'"seed":1e999', "field .*out of range"),
    "huge integer": task("field task: seed must be a whole number", seed=10**400),
    "duplicate key": swapped(b'"schema":2', b'"schema":2,"schema":2', "field "),
    "nested duplicate key": swapped(b'"seed":4', b'"seed":4,"seed":4', "field line: .*twice"),
    "100,000 levels": swapped(
        b'"options":{}',
        b'"options":{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}",
        "field line: .*recurs",
    ),
    "20 MB in a line": content(lambda lines: lines[0][:-2] + b" " * 20 * 10**6, "field size: "),
    "20 MB of zeros": content(lambda lines: b"\0" * 20 * 10**6, "field size: 20000000 bytes, more"),
    "16 MB of brackets": swapped(
        b'"options":{}',
        b'"options":{"a":[' + b",".join([b"[" * 30 + b"]" * 30] * 240_000) + b"]}",
        "field options: more",
    ),
    "240,000 words": swapped(
        b'"machine":{',
        b'"machine":{' + b"".join(b'"%d":"1",' % i for i in range(240_000)),
        "field machine: .*length <= 100",
    ),
    "a key of 16 MB": swapped(
        b'"error":', b'"' + b" - at `$.a" * 1_600_000 + b'":1,"error":', "field .*unknown field"
    ),
    "a key of 16 MB, in unicode": swapped(
        b'"error":',
        '"\U0001f600'.encode() + b"a" * 16_000_000 + b'":1,"error":',
        "field line: .*ASCII",
    ),
    "a number of 16 MB": swapped(
        b'"seconds_optimizer":', b'"seconds_optimizer":1.' + b"0" * 16_000_000 + b',"a":', "field a"
    ),
    "16 MB of zeros": content(lambda lines: b"\0" * 2**24, "line 1, field line: "),
    "300 MB, sparse": Case(sparse, "field size: 300000000 bytes, more than"),
    "1,000,000 lines": content(lambda lines: b"{}\n" * 10**6, "line 1, field .*: Object missing"),
    "700,000 evaluations": content(lambda lines: grown(lines, 700_000), "700000 evaluations"),
    "200,000 empty lists": swapped(
        b'"options":{}', b'"options":{"a":[' + b"[]," * 200_000 + b"0]}", "field options: more"
    ),
    "16 MB of empty lists": swapped(
        b'"options":{}', b'"options":{"a":[' + b"[]," * 5_500_000 + b"0]}", "field line: more than"
    ),
    "101 runs": content(lambda lines: many(lines, 101), "line 101, field seed: more than 100 runs"),
    "not an object": content(lambda lines: b"[]\n", "field line: Expected `object`"),
    "string for a number": fields("field seconds_optimizer", seconds_optimizer="1"),
    "seconds that overflow": fields("field seconds_optimizer: .*<=", seconds_optimizer=1.7e308),
    "seconds beyond thirty years": fields("field seconds_evaluation", seconds_evaluation=1e10),
    "negative seconds": fields("field seconds_optimizer", seconds_optimizer=-1.0),
    "number for a string": fields("field digest", digest=1),
    "list for an object": fields("field options", options=[]),
    "null for a list": fields("field objective", objective=None),
    "boolean seed": task("field task.seed", seed=True),
    "float seed": task("field task.seed", seed=4.5),
    "negative seed": task("field task: seed must be a whole number", seed=-1),
    "other schema": fields("field schema", schema=3),
    "unknown key": fields("field more: .*unknown", more=1),
    "missing key": edited(lambda record: record.pop("digest"), "field digest: .*missing"),
    "missing seed": content(
        lambda lines: b"".join(lines[:4] + lines[5:]), "line 5, field task.seed: seed 5 stands"
    ),
    "extra seed": content(
        lambda lines: b"".join([*lines, lines[9].replace(b'"seed":9', b'"seed":50')]),
        "line 11, field task.seed: seed 50 stands there, expected seed 10",
    ),
    "nine seeds": content(
        lambda lines: b"".join(lines[:9]), "field task.seed: 9 runs, at least 10"
    ),
    "unsorted": content(
        lambda lines: b"".join([lines[1], lines[0], *lines[2:]]), "line 1, field task.seed: seed 1"
    ),
    "a run twice": content(
        lambda lines: b"".join([*lines[:5], lines[4], *lines[5:]]),
        "line 6, field task.seed: seed 4 is there twice",
    ),
    "a run under two seeds": content(
        lambda lines: b"".join([*lines[:9], lines[8].replace(b'"seed":8', b'"seed":9')]),
        "line 10, field digest: the same run as line 9",
    ),
    "renamed seeds": content(
        lambda lines: renamed(lines, 3, 9), "line 4, field points: point 0 of the initial design"
    ),
    "wrong budget": task("field task.budget: 200|field objective: 100", budget=200),
    "wrong batch size": task("field task.batch_size: 5, must be 1", batch_size=5),
    "wrong initial design": task("field task.n_init: 20, must be 10", n_init=20),
    "asynchronous": task("field task.workers: 4, must be None", workers=4),
    "mixed identities": edited(
        lambda record: record["versions"].update({"optimizer-source": "0" * 64}),
        "field versions: optimizer-source 000",
    ),
    "identity of nothing": claimed("", "field versions: optimizer-source is '', expected a SHA"),
    "identity cut short": claimed("0" * 16, "field versions: optimizer-source is '000"),
    "identity of other code": claimed("0" * 64, "field versions: .* neither what random-search is"),
    "no identity": claimed(None, "field versions: it does not name 'optimizer-source'"),
    "mixed options": fields("field options: it differs from line 1", options={"step": 2}),
    "no version": edited(lambda record: record["versions"].clear(), "field versions: .*cbo-suite"),
    "direction override in a version": edited(
        lambda record: record["versions"].update({"numpy": "\u202e1.0"}), "field versions: .*print"
    ),
    "another space": edited(
        lambda record: record["facts"].update({"space": "0" * 64}), "field facts: it differs"
    ),
    "no space": edited(lambda record: record["facts"].clear(), "field facts: .*'space'"),
    "forged objective": value("objective", lambda f: f + 1e-9, "field objective: evaluation .* ag"),
    "forged by a trifle": value(
        "objective", lambda f: f - 3e-13, "field objective: evaluation .* ag"
    ),
    "forged violation": value("violation", lambda v: v / 2, "field violation: evaluation .* again"),
    "forged digest": fields("field digest: it is not that of", digest="0" * 64),
    "forged root": fields("field digest: it is not that of", root="0" * 64),
    "no points": fields("field points", points=None),
    "no base64": fields("field points: ", points="<script>"),
    "no ascii": fields("field points: ", points="\u202e"),
    "half of the points": edited(
        lambda record: record.update(points=write_doubles(read_doubles(record["points"])[:100])),
        "field points: 800 bytes are not 100 x 2 doubles",
    ),
    "points of four variables": edited(
        lambda record: record.update(dim=4, points=record["points"] * 2), "field "
    ),
    "no constraints": fields("field num_constraints: 0 constraints ins", num_constraints=0),
    "point that is nan": fields(
        "field points: a coordinate is not", points=write_doubles(np.full(200, np.nan))
    ),
    "point outside the box": points(
        lambda x: x.__setitem__(77, 1.5), r"field points: .*inside the box, got x\[77, 0\]"
    ),
    "point of another value": points(
        lambda x: x.__setitem__(77, 0.5), "field objective: evaluation 77 does not come out"
    ),
    "another design": points(lambda x: x.__setitem__(3, 0.5), "field points: point 3 of the init"),
    "best known point planted": points(
        lambda x: x.__setitem__(3, BEST_KNOWN), "field points: point 3 .*the best known point"
    ),
    "gzip": content(lambda lines: gzip.compress(b"".join(lines)), "line 1, field line: "),
    "gzip bomb": content(lambda lines: gzip.compress(b"0" * 50 * 10**6), "line 1, field line: "),
    "zip": content(zipped, "line 1, field line: "),
    "symbolic link": Case(symlink, "field path: .*symbolic link"),
    "symbolic folder": Case(symlinked_folder, "field path: .*symbolic link"),
    "hard link": Case(hardlink, "field path: the file has 2 names"),
    "named pipe": Case(pipe, "field path: it is no regular file"),
    "folder": Case(subfolder, "field path: "),
    "no such file": Case(
        lambda folder, lines: place(folder), "field path: it cannot be opened: No"
    ),
    "parent folder in a name": task("field task.problem: .*the path says", problem="../../etc"),
    "absolute path in a name": task("field task.optimizer: .*the path", optimizer="/etc/passwd"),
    "nul in a name": task("field task.optimizer: .*the path says", optimizer="a\0b"),
    "nul in the path": Case(
        lambda folder, lines: place(folder, name="a\0b.jsonl"), "field path: the file 'a.*b.jsonl'"
    ),
    "markup in a name": task("field task.optimizer", optimizer="<img src=x onerror=alert(1)>"),
    "300 characters in a name": task("field task.optimizer", optimizer="a" * 300),
    "another optimizer": task("field task.optimizer: 'scbo', the path says", optimizer="scbo"),
    "another problem": named("random-search.jsonl", "field task.problem", "rosenbrock-5d-v1"),
    "unknown problem": named("random-search.jsonl", "field path: the folder", "toy-2d-v9"),
    "device name": named("con.jsonl", "field path: Windows cannot have a file 'con.jsonl'"),
    "trailing dot": named("random-search.", "field path: the file 'random-search.' is not"),
    "trailing dot in the id": named("random-search..jsonl", "field path: the file"),
    "direction override": named("hcraes\u202emodnar.jsonl", "field path: the file 'hcraes"),
    "homoglyph": named("r\u0430ndom-search.jsonl", "field path: the file"),
    "capital letters": named("Random-Search.jsonl", "field path: the file 'Random-Search.jsonl'"),
    "line break in the path": named("random\nsearch.jsonl", "field path: the file"),
    "long name": named("a" * 200 + ".jsonl", "field path: the file 'aaa"),
    "another suffix": named("random-search.json", "field path: the file 'random-search.json'"),
    "hidden file": named(".jsonl", "field path: the file '.jsonl' is not named"),
}


def many(lines: Lines, count: int) -> bytes:
    """Repeat a run under many seeds."""
    return b"".join(lines[0].replace(b'"seed":0', b'"seed":%d' % seed) for seed in range(count))
