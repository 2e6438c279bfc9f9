"""The workflow of the leaderboard: strangers' data is verified, their code never has rights."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / ".github" / "workflows" / "leaderboard.yml").read_text("utf-8")
GIT, BASH = shutil.which("git") or "git", shutil.which("bash") or "bash"


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    """The workflow as GitHub reads it."""
    loaded: dict[Any, Any] = yaml.safe_load(TEXT)
    return loaded


def commands(job: dict[str, Any]) -> list[str]:
    """Return the commands of a job's steps."""
    return [step["run"] for step in job["steps"] if "run" in step]


def test_pull_requests_have_a_reading_token_and_no_secrets(workflow: dict[Any, Any]) -> None:
    """Strangers start it by `pull_request` only, and only main may publish."""
    # YAML takes the word `on` for true.
    assert workflow[True].keys() == {"pull_request", "push"}
    assert workflow[True]["push"]["branches"] == ["main"]
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets" not in TEXT.replace("no secrets", "")
    jobs = workflow["jobs"]
    privileged = {name for name, job in jobs.items() if "permissions" in job}
    assert privileged == {"publish"}
    assert jobs["publish"]["if"] == "github.event_name == 'push'"


def test_the_privileged_job_runs_nothing(workflow: dict[Any, Any]) -> None:
    """It deploys what another job has built: no checkout, no command, one action."""
    job = workflow["jobs"]["publish"]
    assert job["permissions"] == {"pages": "write", "id-token": "write"}
    assert commands(job) == []
    assert [step["uses"].partition("@")[0] for step in job["steps"]] == ["actions/deploy-pages"]


def test_records_are_verified_by_the_code_of_the_base(workflow: dict[Any, Any]) -> None:
    """The submission is checked out as data beside it; nothing of it is installed or called."""
    job = workflow["jobs"]["records"]
    assert job["if"] == "github.event_name == 'pull_request'"
    places = {
        step["with"]["path"]: step["with"].get("ref")
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    }
    assert places == {"suite": "${{ github.event.pull_request.base.sha }}", "submission": None}
    install, *_, verify = commands(job)
    assert install.endswith('"./suite[lunar]"')
    assert "--constraint suite/constraints.txt" in install
    assert re.search(r"cbo verify --against \.\./suite/leaderboard/runs --$", verify.strip())
    # A script of a job in which a stranger's text were pasted would run that text.
    assert not any("${{" in command for command in commands(job))
    assert job["steps"][-1]["env"] == {"PYTHONSAFEPATH": "1"}


def test_every_job_checks_the_board(workflow: dict[Any, Any]) -> None:
    """A board that is out of date fails; main builds and hands over the site."""
    job = workflow["jobs"]["board"]
    assert commands(job)[1:] == ["cbo leaderboard build --check", "cbo leaderboard build"]
    build, upload = job["steps"][-2:]
    assert build["if"] == upload["if"] == "github.event_name == 'push'"
    assert upload["with"]["path"] == "leaderboard/site"
    assert workflow["jobs"]["publish"]["needs"] == "board"


def test_actions_are_pinned_by_commit(workflow: dict[Any, Any]) -> None:
    """A tag can be moved, a commit cannot."""
    used = [
        step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step
    ]
    assert len(used) == 7
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in used)


@pytest.mark.skipif(sys.platform != "linux", reason="the workflow runs on Linux")
def test_changed_and_removed_records_are_told_apart(
    workflow: dict[Any, Any], tmp_path: Path
) -> None:
    """The commands of the job, in a real repository with a merge, odd names among the files."""
    _, which, kept, verify = commands(workflow["jobs"]["records"])
    repository = tmp_path / "submission"
    runs = repository / "leaderboard" / "runs" / "toy-2d-v1"
    runs.mkdir(parents=True)

    def git(*words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([GIT, *name, *words], cwd=repository, check=True, capture_output=True)

    def commit(text: str) -> None:
        git("add", "--all")
        git("commit", "--message", text)

    git("init", "--initial-branch=main")
    for name in ("old.jsonl", "gone.jsonl", "same.jsonl"):
        (runs / name).write_text(name)
    commit("published")
    git("switch", "--create", "submission")
    (runs / "gone.jsonl").unlink()
    (runs / "old.jsonl").write_text("changed")
    for name in ("new.jsonl", "with space.jsonl", "line\nbreak.jsonl"):
        (runs / name).write_text("new")
    (repository / "README.md").write_text("elsewhere")
    commit("submitted")
    git("switch", "main")
    git("merge", "--no-ff", "submission")
    subprocess.run([BASH, "-e", "-c", which], cwd=tmp_path, check=True)
    folder = "leaderboard/runs/toy-2d-v1"
    changed = {f"{folder}/{n}.jsonl" for n in ("old", "new", "with space", "line\nbreak")}
    assert set((tmp_path / "changed").read_text().split("\0")[:-1]) == changed
    assert (tmp_path / "removed").read_text() == f"{folder}/gone.jsonl\0"
    assert subprocess.run([BASH, "-e", "-c", kept], cwd=tmp_path, check=False).returncode == 1
    # In place of `cbo verify` a command that writes down what it is given.
    told = shlex.split(verify.replace("cbo verify", "printf '%s\\0'"))
    done = subprocess.run(told, cwd=repository, check=True, capture_output=True, text=True)
    given = done.stdout.split("\0")
    assert given[:3] == ["--against", "../suite/leaderboard/runs", "--"]
    assert set(given[3:-1]) == changed
