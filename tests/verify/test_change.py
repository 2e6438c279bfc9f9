"""Records of a commit, read from git: what `cbo verify --since` takes, refuses and points out."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cbo_suite.cli import main
from cbo_suite.records import Record, encode_record
from cbo_suite.verify.change import find_change, write_records_of
from tests.submissions.honest import run_records

RUNS = Path("leaderboard", "runs", "toy-2d-v1")


def git(folder: Path, *words: str) -> str:
    """Call git in a folder and return what it prints."""
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false"]
    command = ["git", *name, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> None:
    """Commit all that is in a folder."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")


def verify(folder: Path) -> Result:
    """Verify what the last commit changes."""
    return CliRunner().invoke(main, ["verify", "--since", "HEAD^", "--repository", str(folder)])


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Record]:
    """Ten honest runs."""
    return run_records(tmp_path_factory.mktemp("runs"), "toy-2d-v1", "random-search", range(10))


@pytest.fixture
def repository(tmp_path: Path, records: Sequence[Record]) -> Path:
    """A repository with a published row."""
    folder = tmp_path / "repository"
    (folder / RUNS).mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    data = b"".join(map(encode_record, records))
    (folder / RUNS / "random-search.jsonl").write_bytes(data)
    (folder / "leaderboard" / "verified.json").write_text("{}")
    commit(folder)
    return folder


def test_an_honest_row_is_verified(repository: Path) -> None:
    """A change elsewhere leaves nothing to verify; a row that is new again is verified."""
    (repository / "README.md").write_text("new")
    commit(repository)
    done = verify(repository)
    assert (done.exit_code, "0 record files" in done.output) == (0, True)
    git(repository, "rm", "--quiet", "-r", "leaderboard/runs")
    commit(repository)
    assert verify(repository).exit_code == 1
    git(repository, "revert", "--no-edit", "HEAD")
    done = verify(repository)
    assert done.exit_code == 0, done.output
    assert "1 record files" in done.output
    assert "1 verified, 0 unverified, 0 refused" in done.output


def test_attributes_of_a_submission_have_no_say(repository: Path, tmp_path: Path) -> None:
    """Bytes are those that are committed, and a maintainer is told of the attributes."""
    committed = (repository / RUNS / "random-search.jsonl").read_bytes()
    (repository / ".gitattributes").write_text("*.jsonl text eol=crlf\n")
    commit(repository)
    done = verify(repository)
    assert "for a maintainer: .gitattributes is changed" in done.output
    (written,) = write_records_of(repository, "HEAD", tmp_path / "out")
    assert written.read_bytes() == committed


@pytest.mark.parametrize(
    ("place", "kind", "words"),
    [
        ("toy-2d-v1/new.jsonl", "160000", "got mode 160000"),
        ("toy-2d-v1", "160000", "the place of a record file"),
        ("toy-2d-v1/new.jsonl", "120000", "got mode 120000"),
        ("toy-2d-v1/new.jsonl", "100755", "got mode 100755"),
        ("toy-2d-v1/.gitattributes", "100644", "the place of a record file"),
        ("new.jsonl", "100644", "the place of a record file"),
        ("toy-2d-v1/deep/new.jsonl", "100644", "the place of a record file"),
        ("toy-2d-v1/..\\..\\new.jsonl", "100644", "the place of a record file"),
    ],
)
def test_what_is_no_plain_record_file_is_refused(
    repository: Path, place: str, kind: str, words: str
) -> None:
    """Submodules, links, programs, attributes and files at any other depth."""
    stored = "HEAD" if kind == "160000" else "HEAD:leaderboard/verified.json"
    name = git(repository, "rev-parse", stored)
    if place == "toy-2d-v1":
        git(repository, "rm", "--quiet", "-r", "--cached", "leaderboard/runs")
    entry = f"{kind},{name.strip()},leaderboard/runs/{place}"
    git(repository, "update-index", "--add", "--cacheinfo", entry)
    git(repository, "commit", "--quiet", "--message", "change")
    done = verify(repository)
    assert done.exit_code == 1
    assert words in done.output


def tree(repository: Path, *entries: tuple[str, str, str]) -> str:
    """Write a tree of entries (mode and kind, object, name) as it is said, and return its name."""
    lines = "".join(f"{kind} {name}\t{path}\n" for kind, name, path in entries)
    command = ["git", "mktree"]
    done = subprocess.run(command, cwd=repository, input=lines, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("folders", "names", "words"),
    [
        (["toy-2d-v1"], ["random-search.jsonl", "random-search.jsonl"], "twice"),
        (["toy-2d-v1", ".."], ["random-search.jsonl"], "the place of a record file"),
    ],
)
def test_trees_that_git_itself_would_not_write_are_refused(
    repository: Path, folders: list[str], names: list[str], words: str
) -> None:
    """Two files of one name, of which one is the published one, and a way out of the folder."""
    blobs = ["HEAD:leaderboard/verified.json", f"HEAD:{(RUNS / 'random-search.jsonl').as_posix()}"]
    found = [git(repository, "rev-parse", blob).strip() for blob in blobs]
    pairs = zip(found[-len(names) :], names, strict=True)
    files = tree(repository, *(("100644 blob", blob, name) for blob, name in pairs))
    runs = tree(repository, *(("040000 tree", files, folder) for folder in folders))
    marks = ("100644 blob", found[0], "verified.json")
    board = tree(repository, ("040000 tree", runs, "runs"), marks)
    top = tree(repository, ("040000 tree", board, "leaderboard"))
    made = git(repository, "commit-tree", top, "-p", "HEAD", "-m", "change").strip()
    git(repository, "update-ref", "refs/heads/main", made)
    done = verify(repository)
    assert (done.exit_code, words in done.output) == (1, True), done.output


def test_a_submodule_anywhere_is_refused(repository: Path) -> None:
    """It could stand in the place of anything."""
    head = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},docs")
    git(repository, "commit", "--quiet", "--message", "change")
    done = verify(repository)
    assert (done.exit_code, "submodules" in done.output) == (1, True)


def test_removed_records_and_marks_are_refused(repository: Path) -> None:
    """What is published stays, and nobody marks rows of their own."""
    (repository / RUNS / "random-search.jsonl").unlink()
    (repository / "leaderboard" / "verified.json").write_text('{"toy-2d-v1/new": "0"}')
    commit(repository)
    complaints = find_change(repository, "HEAD^", "HEAD").complaints
    assert [text.partition(": ")[0] for text in complaints] == [
        "leaderboard/runs/toy-2d-v1/random-search.jsonl",
        "leaderboard/verified.json",
    ]


@pytest.mark.parametrize(
    "path", [".github/workflows/x.yml", "cbo_suite/verify/replay.py", "a/.gitattributes"]
)
def test_changes_to_what_judges_are_pointed_out(repository: Path, path: str) -> None:
    """A maintainer sees them whatever else the commit holds."""
    (repository / path).parent.mkdir(parents=True)
    (repository / path).write_text("new")
    commit(repository)
    assert find_change(repository, "HEAD^", "HEAD").notices == [path]


def test_nothing_to_verify_is_no_success(tmp_path: Path, repository: Path) -> None:
    """An empty folder, a commit that is not there, and files beside --since."""
    empty = tmp_path / "empty"
    empty.mkdir()
    done = CliRunner().invoke(main, ["verify", str(empty)])
    assert (done.exit_code, "nothing to verify" in done.output) == (1, True)
    words = ["verify", "--repository", str(repository), "--since"]
    done = CliRunner().invoke(main, [*words, "--upload-pack=touch x"])
    assert (done.exit_code, "git cannot read" in done.output) == (1, True)
    assert CliRunner().invoke(main, [*words, "HEAD", "file.jsonl"]).exit_code == 2
