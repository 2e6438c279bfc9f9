"""MOPTA08: installation, identity, errors and evaluation, with stand-ins for the executable.

The stand-ins are known by reference points of their own. Where CBO_MOPTA08 names the genuine
executable, the test marked `binary` runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import cbo_suite as cbo
from cbo_suite.checks import check_problem
from cbo_suite.cli import main
from cbo_suite.errors import (
    EvaluationFailed,
    ExecutableCrashed,
    ExecutableTimeout,
    InvalidTask,
    MissingExecutable,
    PartialEvaluation,
    WrongExecutable,
)
from cbo_suite.problems.mopta08 import Mopta08
from cbo_suite.problems.mopta08.install import data_folder, install, locate, reference_points
from tests.problems.stand_ins import BAD, batch, compile_c, references, script, values

ROOT = Path(__file__).parents[2]
GENUINE = os.environ.get("CBO_MOPTA08")

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="executables are supervised on Linux and macOS only"
)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the well-behaved stand-in."""
    return compile_c(tmp_path_factory.mktemp("stand_in"))


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's own installation out of the tests, and the tests out of it."""
    monkeypatch.delenv("CBO_MOPTA08", raising=False)
    monkeypatch.setattr("platformdirs.user_data_path", lambda *names, **options: tmp_path / "data")
    return tmp_path / "data"


def impostor(path: Path) -> Path:
    """Write a script that knows the two reference points of MOPTA08 and nothing else."""
    lines = ["#!/bin/sh", "set -e"]
    for point in reference_points():
        digits = "".join(f"{value!r}\n" for value in point.x.tolist())
        answer = "".join(f"{value!r}\n" for value in point.values.tolist())
        lines += [
            f"cat > known.txt <<'END'\n{digits}END",
            f"if cmp -s known.txt input.txt; then\ncat > output.txt <<'END'\n{answer}END",
            "exit 0; fi",
        ]
    path.write_text("\n".join([*lines, "exit 1", ""]), encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_problem_is_listed_without_an_executable() -> None:
    """Listing needs nothing; making it says what is missing, from where, and the command."""
    (row,) = [row for row in cbo.list_problems() if row.id == "mopta08-124d-v1"]
    assert (row.dim, row.num_constraints) == (124, 68)
    with pytest.raises(MissingExecutable) as caught:
        cbo.make_problem("mopta08-124d-v1")
    for words in ("cbo mopta08 install PATH", "CBO_MOPTA08", "Jones", "mopta08_elf64.bin"):
        assert words in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)


def test_the_reference_points_are_those_of_the_literature() -> None:
    """The centre has 15 violated constraints; the other point is feasible at 222.23."""
    half, best = reference_points()
    assert half.x.tolist() == [0.5] * 124
    assert half.values[0] == pytest.approx(303.26638112851, abs=1e-11)
    assert (half.values[1:] > 0).sum() == 15
    assert best.values[0] == pytest.approx(222.2324, abs=1e-4)
    assert best.values[1:].max() == pytest.approx(-4.5e-5, abs=1e-6)
    assert (best.x.shape, best.values.shape) == ((124,), (69,))


def test_an_installed_executable_evaluates(stand_in: Path) -> None:
    """Values are those of the stand-in's function, to the bit, in the order asked."""
    install(stand_in, references())
    problem = Mopta08(workers=3)
    x = batch(7)
    evaluation, expected = problem.evaluate(x), values(x)
    assert np.array_equal(evaluation.objective, expected[:, 0])
    assert np.array_equal(evaluation.constraints, expected[:, 1:])
    assert problem.id == "mopta08-124d-v1"
    assert not problem.cheap
    assert problem.evaluate(np.empty((0, 124))).constraints.shape == (0, 68)


def test_the_problem_carries_digest_and_best_known_point(stand_in: Path) -> None:
    """Runs record the SHA-256; the best known point is that of the genuine MOPTA08."""
    installed = install(stand_in, references())
    problem = cbo.make_problem("mopta08-124d-v1")
    assert isinstance(problem, Mopta08)
    assert problem.executable_sha256 == installed.sha256
    assert getattr(problem.best_known, "objective", None) == 221.0700226922036
    copy = deepcopy(problem)
    assert copy.executable == problem.executable
    assert np.array_equal(copy.evaluate(batch(1)).objective, problem.evaluate(batch(1)).objective)


def test_the_problem_keeps_the_contract(stand_in: Path) -> None:
    """All public rules hold; the best known point is left out, as it is of another function."""
    install(stand_in, references())
    problem = Mopta08()
    problem.best_known = None
    check_problem(problem, num_points=2)


def test_the_copy_is_used_and_not_the_original(tmp_path: Path, stand_in: Path) -> None:
    """The user's own file may go; the copy is the user's alone, and there is one."""
    original = tmp_path / "mine.bin"
    original.write_bytes(stand_in.read_bytes() + b"other")
    original.chmod(0o755)
    install(original, references())
    original.write_bytes(stand_in.read_bytes())
    installed = install(original, references())
    original.unlink()
    assert locate() == installed
    assert "mine.bin" in installed.origin
    assert installed.path.stat().st_mode & 0o777 == 0o700
    assert sorted(data_folder().iterdir()) == sorted(
        [installed.path, data_folder() / "record.json"]
    )


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_changed_byte_is_refused(place: int, stand_in: Path) -> None:
    """When the problem is made, and before every batch of a problem made earlier."""
    installed = install(stand_in, references())
    problem = Mopta08()
    data = bytearray(installed.path.read_bytes())
    data[place] ^= 1
    installed.path.write_bytes(data)
    for use in (Mopta08, lambda: problem.evaluate(batch(1))):
        with pytest.raises(WrongExecutable, match=f"has changed.*not {installed.sha256}"):
            use()
    installed.path.unlink()
    with pytest.raises(MissingExecutable, match="no MOPTA08 executable at"):
        problem.evaluate(batch(1))


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "../../../bin/sh"},
        {"sha256": "A" * 64},
        {"sha256": "0" * 64 + "\n"},
        {"path": "/bin/sh"},
        {"name": 3},
    ],
)
def test_a_record_that_leads_elsewhere_is_refused(
    change: dict[str, object], stand_in: Path
) -> None:
    """The record can name no path: neither by its digest nor by a field of its own."""
    install(stand_in, references())
    path = data_folder() / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises((WrongExecutable, MissingExecutable), match="cbo mopta08 install PATH"):
        locate()


def test_another_function_is_refused_with_the_values_that_differ(
    stand_in: Path, data_home: Path
) -> None:
    """Nothing is installed, and the message shows what was got and what MOPTA08 gives."""
    with pytest.raises(WrongExecutable) as caught:
        install(stand_in)
    text = str(caught.value)
    assert "138 of 138 reference values differ" in text
    assert "half, objective: got 31.25, MOPTA08 gives 303.26638112851214" in text
    assert "half, constraint 1: got 0.2352941176470588" in text
    assert list(data_folder().iterdir()) == []


@pytest.mark.parametrize(("factor", "accepted"), [(1 + 9e-7, True), (1 + 2e-6, False)])
def test_the_tolerance_of_the_identity_check(factor: float, accepted: bool, stand_in: Path) -> None:
    """One part in a million of any single value decides."""
    half, ramp = references()
    changed = ramp.values.copy()
    changed[40] *= factor
    points = [half, ramp._replace(values=changed)]
    if accepted:
        assert install(stand_in, points).sha256
    else:
        with pytest.raises(WrongExecutable, match=r"1 of 138.*\n  ramp, constraint 40"):
            install(stand_in, points)


def test_what_fails_or_is_no_executable_is_refused(tmp_path: Path) -> None:
    """A crash, a text file, a huge file, a folder."""
    with pytest.raises(WrongExecutable, match="at point 'half' the executable ended with status 3"):
        install(script(tmp_path / "crash", "", good="exit 3"))
    text = tmp_path / "text"
    text.write_text("hello")
    with pytest.raises(WrongExecutable, match="could not be started: Exec format error"):
        install(text)
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(WrongExecutable, match="has 67108865 bytes"):
        install(huge)
    with pytest.raises(MissingExecutable, match="no MOPTA08 executable at"):
        install(tmp_path)


def test_a_failed_install_keeps_the_installed_one(stand_in: Path, tmp_path: Path) -> None:
    """The old executable is as good as before."""
    installed = install(stand_in, references())
    with pytest.raises(WrongExecutable):
        install(script(tmp_path / "crash", "", good="exit 3"))
    assert locate() == installed


def test_the_environment_goes_first_and_is_checked_once(
    tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reference point twice for the first problem, no call for the second."""
    install(stand_in, references())
    calls = tmp_path / "calls"
    other = script(tmp_path / "other", "", good=f"echo >> {calls}; {stand_in}")
    monkeypatch.setenv("CBO_MOPTA08", str(other))
    first, second = Mopta08(references=references()), Mopta08(references=references())
    assert first.executable.path == other
    assert first.executable_sha256 == second.executable_sha256
    assert first.executable.origin == "named by CBO_MOPTA08"
    assert calls.read_text() == "\n\n\n\n"
    with other.open("a") as file:
        file.write("# changed\n")
    with pytest.raises(WrongExecutable, match="has changed"):
        first.evaluate(batch(1))


def test_an_executable_that_varies_is_refused(stand_in: Path, tmp_path: Path) -> None:
    """Every call puts its own number behind the digits, far below the tolerance of the values."""
    varying = f'{stand_in}; sed -i "1s/$/00000000$$/" output.txt'
    with pytest.raises(WrongExecutable, match="called twice"):
        install(script(tmp_path / "varying", "", good=varying), references())


def test_the_environment_must_name_mopta08(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another executable nor a path to nothing falls back to the installed one."""
    install(stand_in, references())
    monkeypatch.setenv("CBO_MOPTA08", str(stand_in))
    with pytest.raises(WrongExecutable, match="138 of 138"):
        Mopta08()
    monkeypatch.setenv("CBO_MOPTA08", str(tmp_path / "absent"))
    with pytest.raises(MissingExecutable, match="absent"):
        Mopta08()


def test_a_bad_point_costs_its_batch_nothing_but_itself(
    tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error carries the other values; a single point fails in the same way."""
    path = script(tmp_path / "flaky", "echo mesh error >&2; exit 7", good=f"{stand_in}")
    monkeypatch.setenv("CBO_MOPTA08", str(path))
    problem = Mopta08(references=references())
    x = batch(4, bad=2)
    with pytest.raises(PartialEvaluation, match=r"1 of 4 .*status 7.*mesh error") as caught:
        problem.evaluate(x)
    assert isinstance(caught.value, EvaluationFailed)
    assert list(caught.value.failures) == [2]
    assert isinstance(caught.value.failures[2], ExecutableCrashed)
    good = [0, 1, 3]
    assert np.array_equal(caught.value.evaluation.constraints[good], values(x[good])[:, 1:])
    assert np.isnan(caught.value.evaluation.objective[2])
    with pytest.raises(PartialEvaluation, match="1 of 1"):
        problem.evaluate(np.full((1, 124), BAD))


def test_after_a_hang_the_problem_still_works(
    tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed call is a timeout of its point; a run of the harness then gives values."""
    path = script(tmp_path / "hang", "sleep 1000", good=f"{stand_in}")
    monkeypatch.setenv("CBO_MOPTA08", str(path))
    problem = Mopta08(timeout=1.0, references=references())
    with pytest.raises(PartialEvaluation) as caught:
        problem.evaluate(batch(3, bad=0))
    assert isinstance(caught.value.failures[0], ExecutableTimeout)
    run = cbo.run(problem, "random-search", budget=6, batch_size=3, n_init=3, seed=0)
    assert np.array_equal(run.objective, values(run.x)[:, 0])


@pytest.mark.parametrize("options", [{"timeout": 0.0}, {"timeout": float("nan")}, {"workers": 0}])
def test_impossible_options_are_refused(options: dict[str, float], stand_in: Path) -> None:
    """A message, before any executable is looked for."""
    with pytest.raises(InvalidTask, match="must be"):
        Mopta08(**options)  # type: ignore[arg-type]


def test_the_commands_install_and_status(tmp_path: Path) -> None:
    """Status before, install, status after, and status of a damaged installation."""
    runner = CliRunner()
    before = runner.invoke(main, ["mopta08", "status"])
    assert before.exit_code == 1
    assert "cbo mopta08 install PATH" in before.output
    done = runner.invoke(main, ["mopta08", "install", str(impostor(tmp_path / "genuine"))])
    assert done.exit_code == 0, done.output
    after = runner.invoke(main, ["mopta08", "status"])
    assert after.exit_code == 0
    assert after.output == done.output
    assert locate().sha256 in after.output
    locate().path.write_bytes(b"damaged")
    damaged = runner.invoke(main, ["mopta08", "status"])
    assert damaged.exit_code == 1
    assert "has changed" in damaged.output


def test_the_install_command_refuses(tmp_path: Path, stand_in: Path, data_home: Path) -> None:
    """A wrong executable, no file, and a data folder that cannot be written."""
    runner = CliRunner()
    wrong = runner.invoke(main, ["mopta08", "install", str(stand_in)])
    assert wrong.exit_code == 1
    assert "got 31.25, MOPTA08 gives 303.26638112851214" in wrong.output
    absent = runner.invoke(main, ["mopta08", "install", str(tmp_path / "absent")])
    assert absent.exit_code == 2
    data_home.rename(tmp_path / "old")
    data_home.write_text("a file where the folder should be")
    blocked = runner.invoke(main, ["mopta08", "install", str(stand_in)])
    assert blocked.exit_code == 1
    assert "cannot install" in blocked.output


def test_the_command_in_a_process_of_its_own(tmp_path: Path, stand_in: Path) -> None:
    """As a user calls it: refuse, accept, report; the data folder follows the platform."""
    home = tmp_path / "home"
    environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "share")}
    environment.pop("CBO_MOPTA08", None)

    def cbo_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `cbo mopta08` with arguments."""
        return subprocess.run(
            [sys.executable, "-m", "cbo_suite", "mopta08", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            cwd=ROOT,
        )

    assert "none is installed" in cbo_command("status").stderr
    refused = cbo_command("install", str(stand_in))
    assert refused.returncode == 1
    assert "MOPTA08 gives 303.26638112851214" in refused.stderr
    assert "Traceback" not in refused.stderr
    accepted = cbo_command("install", str(impostor(tmp_path / "genuine")))
    assert accepted.returncode == 0, accepted.stderr
    status = cbo_command("status")
    assert status.stdout == accepted.stdout
    assert str(home) in status.stdout
    assert len(list(home.rglob("record.json"))) == 1


def test_the_command_imports_numpy_only_when_it_works() -> None:
    """`cbo mopta08 --help` costs nothing."""
    code = (
        "import sys; from cbo_suite.cli.mopta08 import mopta08\n"
        "assert not {'numpy', 'msgspec', 'platformdirs'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.binary
@pytest.mark.skipif(GENUINE is None, reason="CBO_MOPTA08 does not name the genuine executable")
def test_the_genuine_executable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes its check, repeats itself, and its best known point is feasible."""
    monkeypatch.setenv("CBO_MOPTA08", str(GENUINE))
    problem = Mopta08()
    evaluation = problem.evaluate(np.vstack([point.x for point in reference_points()] * 2))
    assert np.array_equal(evaluation.constraints[:2], evaluation.constraints[2:])
    assert evaluation.feasible.tolist() == [False, True, False, True]
    assert (evaluation.constraints[0] > 0).sum() == 15
    known = problem.best_known
    assert known is not None
    best = problem.evaluate(known.x[None])
    assert (best.feasible[0], best.objective[0]) == (True, pytest.approx(known.objective, 1e-9))
