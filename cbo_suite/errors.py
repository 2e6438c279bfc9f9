"""One small tree of exceptions; each is also the builtin a caller would expect.

Every message says what was wrong, what was got and what to do. `describe` puts any error into a
line for people, a journal or a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A text that is put into one line is cut to this many characters.
TEXT_LENGTH = 1200


class CboError(Exception):
    """Base of every error that cbo-suite raises on purpose."""

    # KeyError prints the repr of its text; a person should read the text itself.
    __str__ = Exception.__str__


class UnknownId(CboError, KeyError):
    """No problem, optimizer or suite has this id."""


class DuplicateId(CboError, ValueError):
    """Two packages register the same id."""


class MissingExtra(CboError, ImportError):
    """An optional dependency is not installed."""

    @classmethod
    def of(cls, what: str, library: str | None, extra: str) -> MissingExtra:
        """Say what needs which library, and how to install it."""
        return cls(
            f'{what} needs {library}, which is not installed: pip install "cbo-suite[{extra}]"'
        )


class InvalidSpace(CboError, ValueError):
    """Bounds or number of constraints make no box."""


class InvalidPoint(CboError, ValueError):
    """A point has the wrong shape, is not finite or leaves the box."""


class InvalidData(CboError, ValueError):
    """Known results have the wrong shapes, or are no finite numbers."""


class InvalidTask(CboError, ValueError):
    """Budget, batch size, number of initial points, seed or workers make no run."""


class UnsupportedTask(CboError, ValueError):
    """The optimizer declares that it cannot handle this task."""


class EvaluationFailed(CboError, RuntimeError):
    """A problem could not be evaluated."""


class MalformedEvaluation(EvaluationFailed):
    """A problem gave something that is no objective and constraints of the right shapes."""


class PartialEvaluation(EvaluationFailed):
    """Some points of a batch could not be evaluated; the results of the others are here.

    Attributes:
        evaluation: The `Evaluation` of the batch, NaN in the rows that failed.
        failures: Row number to the error of that row.
    """

    def __init__(self, message: str, evaluation: Any, failures: Mapping[int, Exception]) -> None:
        """Keep the results and the errors beside the message."""
        super().__init__(message)
        self.evaluation = evaluation
        self.failures = dict(failures)


class MissingExecutable(CboError, FileNotFoundError):
    """A problem needs an executable that the user has not supplied."""


class WrongExecutable(CboError, ValueError):
    """An executable is not the one that it should be, or was changed."""


class ExecutableFailed(EvaluationFailed):
    """An executable did not give the values of a point."""


class ExecutableTimeout(ExecutableFailed, TimeoutError):
    """An executable did not end in time and was killed."""


class ExecutableCrashed(ExecutableFailed):
    """An executable could not be started, or ended with a signal or a non-zero status."""


class ExecutableFlooded(ExecutableFailed):
    """An executable wrote more than it may."""


class ExecutableLeftProcesses(ExecutableFailed):
    """An executable ended but left processes behind, which were killed."""


class ExecutableOutputInvalid(ExecutableFailed):
    """An executable ended well but its output is missing, short, long or not finite numbers."""


class InvalidResult(CboError, ValueError):
    """A result is of a point that is not under way, was told otherwise, or has the wrong size."""


class OptimizerFailed(CboError, RuntimeError):
    """An optimizer raised or broke its contract.

    Attributes:
        run: What the run recorded until then, None where there is nothing.
    """

    run: Any = None


class JournalError(CboError, ValueError):
    """A journal cannot be read, belongs to another task or does not replay."""


class JournalDamaged(JournalError):
    """A journal is not as it was written: bits changed, or lines were lost, doubled or moved."""


class JournalLocked(CboError, RuntimeError):
    """Another process writes this journal."""


class JournalNotWritten(CboError, OSError):
    """A journal cannot be created or extended; what it held is intact."""


class JournalTakenOver(CboError, RuntimeError):
    """Another process goes on with this journal: this one stops, and changes nothing more."""


class StoreNotWritten(CboError, OSError):
    """The folder of a campaign cannot be written; what it held is intact."""


class ExportRefused(CboError, ValueError):
    """Records are not exported: seeds are missing, or different records are there."""


class RecordError(CboError, ValueError):
    """A result record is malformed."""


class ConformanceError(CboError, AssertionError):
    """A problem or an optimizer breaks its contract."""


def describe(error: BaseException, *, kind: bool = False) -> str:
    """Put an error into one line: its text, with its kind if asked for or if it is not ours."""
    named = kind or not isinstance(error, CboError)
    return one_line(f"{type(error).__name__}: {error}" if named else str(error))


def one_line(text: str, length: int = TEXT_LENGTH) -> str:
    """Put a text of a stranger into one line of bounded length, harmless for a terminal."""
    return printable(" ".join(text.split()))[:length]


def printable(text: str) -> str:
    """Write a text of a stranger without line breaks, control signs and turns of direction."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )
