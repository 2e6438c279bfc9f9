"""Which MOPTA08 executable to use, and how it is known to be MOPTA08.

The executable is third-party software that the user supplies; nothing here downloads it.
`install` copies it into the user's data folder after it has reproduced the reference values, and
records its SHA-256. `locate` finds it again and refuses it when a byte has changed. The path in
the environment variable CBO_MOPTA08 goes before the installed one; having no record, it must
reproduce the reference values once in every process that uses it.

The check guards against mistakes and damage. It cannot guard against a program that was written
to pass it: install only what you trust to run.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import platformdirs

from cbo_suite.errors import MissingExecutable, WrongExecutable
from cbo_suite.problems.mopta08.executable import evaluate_points
from cbo_suite.protocols import Array
from cbo_suite.system import cores

VARIABLE = "CBO_MOPTA08"
NUM_VALUES = 69  # objective, then 68 constraints
TIMEOUT = 60.0
MAX_BYTES = 2**26
RELATIVE_TOLERANCE = 1e-6
# Half a unit in the ninth decimal, should an executable write fixed decimals.
ABSOLUTE_TOLERANCE = 5e-10

SOURCE = (
    "MOPTA08 is a benchmark of D. R. Jones (General Motors), presented at the MOPTA 2008 "
    "conference. It is third-party software, so cbo-suite neither contains nor downloads it. "
    "Executables for Linux and other systems (mopta08_elf64.bin, mopta08_elf32.bin, "
    "mopta08_armhf.bin, mopta08.exe) are offered by their publishers on the web: search for "
    '"MOPTA08 executables"'
)
HOW_TO_INSTALL = "Then run `cbo mopta08 install PATH`, or name its path in CBO_MOPTA08."


class ReferencePoint(NamedTuple):
    """A point whose values are known.

    Attributes:
        name: What to call it.
        x: The point, shape `(124,)`.
        values: Objective, then constraints, shape `(69,)`.
    """

    name: str
    x: Array
    values: Array


class Executable(NamedTuple):
    """An executable that passed its check.

    Attributes:
        path: Where it is.
        sha256: Its digest.
        origin: Where it comes from, in words.
    """

    path: Path
    sha256: str
    origin: str

    def verify(self) -> None:
        """Refuse the executable if a byte of it has changed.

        Raises:
            MissingExecutable: It is gone.
            WrongExecutable: It has changed.
        """
        if (digest := _sha256(_read(self.path))) != self.sha256:
            raise WrongExecutable(
                f"the MOPTA08 executable {self.path} has changed: its SHA-256 is {digest}, not "
                f"{self.sha256}. Install it again with `cbo mopta08 install PATH`"
            )


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    """What `install` writes down; the path follows from the digest and is never stored."""

    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    name: str
    installed: str


@cache
def reference_points() -> tuple[ReferencePoint, ...]:
    """Return the points at which an executable shows that it is MOPTA08."""
    path = Path(__file__).with_name("reference.json")
    points = json.loads(path.read_text(encoding="utf-8"))["points"]
    return tuple(
        ReferencePoint(
            point["name"],
            np.array(point["x"]),
            np.array([point["objective"], *point["constraints"]]),
        )
        for point in points
    )


def install(path: Path, references: Sequence[ReferencePoint] | None = None) -> Executable:
    """Copy a user's executable into the data folder, if it is MOPTA08.

    Args:
        path: The user's file.
        references: Points it must reproduce, those of the genuine MOPTA08 by default.

    Raises:
        MissingExecutable: There is no such file.
        WrongExecutable: It does not reproduce the reference values.
    """
    data = _read(path)
    record = _Record(_sha256(data), path.name, datetime.now(UTC).date().isoformat())
    folder = data_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        candidate = Path(scratch, "candidate")
        candidate.write_bytes(data)
        candidate.chmod(0o700)
        _check_identity(candidate, references or reference_points())
        note = Path(scratch, "record")
        note.write_bytes(msgspec.json.encode(record))
        candidate.replace(_copy_path(record))
        note.replace(folder / "record.json")
    for old in folder.glob("mopta08-*"):
        if old != _copy_path(record):
            old.unlink(missing_ok=True)
    return _installed(record)


def locate(references: Sequence[ReferencePoint] | None = None) -> Executable:
    """Find the executable to use and check it.

    Args:
        references: Points that the one named by CBO_MOPTA08 must reproduce, those of the genuine
            MOPTA08 by default.

    Raises:
        MissingExecutable: None is installed and CBO_MOPTA08 names none.
        WrongExecutable: It is not MOPTA08, or has changed since it was installed.
    """
    if named := os.environ.get(VARIABLE):
        path = Path(named).expanduser().absolute()
        executable = Executable(path, _sha256(_read(path)), f"named by {VARIABLE}")
        _check_once(executable, tuple(references or reference_points()))
        return executable
    record_path = data_folder() / "record.json"
    try:
        record = msgspec.json.decode(record_path.read_bytes(), type=_Record)
    except FileNotFoundError as error:
        raise MissingExecutable(
            f"mopta08-124d-v1 needs the MOPTA08 executable, and none is installed. {SOURCE}. "
            f"{HOW_TO_INSTALL}"
        ) from error
    except msgspec.DecodeError as error:
        raise WrongExecutable(
            f"the record of the installed MOPTA08 executable, {record_path}, is damaged: {error}. "
            "Install it again with `cbo mopta08 install PATH`"
        ) from error
    executable = _installed(record)
    executable.verify()
    return executable


def data_folder() -> Path:
    """Return the folder of the installed executable."""
    return platformdirs.user_data_path("cbo-suite", appauthor=False) / "mopta08"


def _installed(record: _Record) -> Executable:
    """Describe the executable of a record."""
    origin = f"installed from {record.name} on {record.installed}"
    return Executable(_copy_path(record), record.sha256, origin)


def _copy_path(record: _Record) -> Path:
    """Return where the executable of a record is kept."""
    return data_folder() / f"mopta08-{record.sha256}"


def _read(path: Path) -> bytes:
    """Read an executable, within reason."""
    if not path.is_file():
        raise MissingExecutable(
            f"there is no MOPTA08 executable at {path}. {SOURCE}. {HOW_TO_INSTALL}"
        )
    if (size := path.stat().st_size) > MAX_BYTES:
        raise WrongExecutable(
            f"{path} has {size} bytes and MOPTA08 at most {MAX_BYTES}: is it the right file?"
        )
    return path.read_bytes()


def _sha256(data: bytes) -> str:
    """Return the digest of an executable."""
    return hashlib.sha256(data).hexdigest()


# Executables named by CBO_MOPTA08 that this process has checked.
_checked: set[tuple[str, bytes]] = set()


def _check_once(executable: Executable, references: tuple[ReferencePoint, ...]) -> None:
    """Check an executable against reference points unless this process has done so."""
    key = (executable.sha256, b"".join(point.values.tobytes() for point in references))
    if key not in _checked:
        _check_identity(executable.path, references)
        _checked.add(key)


def _check_identity(path: Path, references: Sequence[ReferencePoint]) -> None:
    """Refuse an executable that does not reproduce the reference values."""
    # Each point twice: what varies from call to call is no function, however near it is.
    x = np.array([point.x for point in references] * 2)
    expected = np.array([point.values for point in references])
    found, failures = evaluate_points(path, x, NUM_VALUES, timeout=TIMEOUT, workers=cores())
    for row, error in failures.items():
        raise WrongExecutable(
            f"this executable does not show that it is MOPTA08: at point "
            f"{references[row % len(references)].name!r} {error}"
        ) from error
    values, again = found[: len(references)], found[len(references) :]
    varying = (values != again).any(axis=1)
    if varying.any():
        name = references[int(np.argmax(varying))].name
        raise WrongExecutable(
            f"this executable is not MOPTA08: called twice at point {name!r} it gives other values"
        )
    same = np.isclose(values, expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE)
    if not same.all():
        rows, places = np.nonzero(~same)
        shown = [
            f"{references[row].name}, {_value_name(place)}: got {float(values[row, place])!r}, "
            f"MOPTA08 gives {float(expected[row, place])!r}"
            for row, place in zip(rows[:5].tolist(), places[:5].tolist(), strict=True)
        ]
        raise WrongExecutable(
            f"this executable is not MOPTA08: {rows.size} of {same.size} reference values differ."
            f"\n  " + "\n  ".join(shown)
        )


def _value_name(place: int) -> str:
    """Name one of the 69 values."""
    return f"constraint {place}" if place else "objective"
