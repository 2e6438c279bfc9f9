"""The workflow of the leaderboard: strangers' data is verified, their code never has rights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / ".github" / "workflows" / "leaderboard.yml").read_text("utf-8")
GIT, BASH = shutil.which("git") or "git", shutil.which("bash") or "bash"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the workflow runs on Linux")


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    """The workflow as GitHub reads it."""
    loaded: dict[Any, Any] = yaml.safe_load(TEXT)
    return loaded


def commands(job: dict[str, Any]) -> list[str]:
    """Return the commands of a job's steps."""
    return [step["run"] for step in job["steps"] if "run" in step]


def git(folder: Path, *words: str) -> str:
    """Call git in a folder and return what it prints."""
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = [GIT, *name, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def commit(folder: Path, text: str) -> None:
    """Commit all that is in a folder."""
    git(folder, "add", "--all")
    git(folder, "commit", "--message", text)


def bash(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a step as the workflow does."""
    command = [BASH, "-e", "-c", script]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def test_it_runs_for_all_that_the_site_shows(workflow: dict[Any, Any]) -> None:
    """Records, scores, problems, titles and method cards."""
    folders = {"leaderboard", "cbo_suite", "problems", "optimizers", "docs"}
    for event in ("pull_request", "push"):
        paths = set(workflow[True][event]["paths"])
        assert {f"{folder}/**" for folder in folders} <= paths


def test_pull_requests_have_a_reading_token_and_no_secrets(workflow: dict[Any, Any]) -> None:
    """Strangers start it by `pull_request` only, and only main may publish."""
    # YAML takes the word `on` for true.
    assert workflow[True].keys() == {"pull_request", "push"}
    assert workflow[True]["push"]["branches"] == ["main"]
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets" not in TEXT.replace("no secrets", "")
    jobs = workflow["jobs"]
    privileged = {name for name, job in jobs.items() if "permissions" in job}
    assert privileged == {"tables", "publish"}
    assert all(jobs[name]["if"] == "github.event_name == 'push'" for name in privileged)
    assert jobs["tables"]["permissions"] == {"contents": "write"}


def test_the_job_that_publishes_runs_nothing(workflow: dict[Any, Any]) -> None:
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
    install, verify = commands(job)
    assert install.endswith('"./suite[lunar]"')
    assert "--constraint suite/constraints.txt" in install
    assert verify == "cbo verify --since HEAD^1 --repository submission"
    # A script of a job in which a stranger's text were pasted would run that text.
    assert not any("${{" in command for command in commands(job))
    assert job["steps"][-1]["env"] == {"PYTHONSAFEPATH": "1"}


def test_a_pull_request_needs_records_but_no_tables(workflow: dict[Any, Any]) -> None:
    """Its board must come out, twice the same; two of them do not stand in each other's way."""
    job = workflow["jobs"]["board"]
    assert job["if"] == "github.event_name == 'pull_request'"
    assert commands(job)[1:] == ["cbo leaderboard build", "cbo leaderboard build --check"]


def test_main_builds_the_tables_and_the_site(workflow: dict[Any, Any]) -> None:
    """With the code of main and without any optimizer: nothing is run but the board."""
    job = workflow["jobs"]["tables"]
    install, build, check, show, compare, push = commands(job)
    assert install == "python -m pip install --constraint constraints.txt ."
    # The site is published without the records, which are in the repository.
    records = '"$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/raw/main/leaderboard/runs"'
    assert build == f"cbo leaderboard build --records-at {records}"
    assert check == "cbo leaderboard build --check"
    assert show == "python -m tests.write_readme"
    assert compare == "python -m tests.leaderboard.rivals_page"
    assert {line.split()[0] for line in push.splitlines()} == {"git", "}"}
    assert job["steps"][0]["with"] == {"persist-credentials": False, "ref": "main"}
    knowing = [step.get("run") for step in job["steps"] if "env" in step]
    assert knowing == [push]
    assert job["steps"][-1]["with"]["path"] == "leaderboard/site"
    assert workflow["jobs"]["publish"]["needs"] == "tables"
    assert workflow["concurrency"]["cancel-in-progress"] == (
        "${{ github.event_name == 'pull_request' }}"
    )


@on_linux
def test_tables_are_committed_if_they_have_changed(
    workflow: dict[Any, Any], tmp_path: Path
) -> None:
    """The command of the job, with a real remote: once, alone, and on top of a later commit."""
    push = commands(workflow["jobs"]["tables"])[-1]
    origin, checkout, other = tmp_path / "origin", tmp_path / "checkout", tmp_path / "other"
    git(tmp_path, "init", "--bare", "--initial-branch=main", "origin")
    git(tmp_path, "clone", "origin", "other")
    for name in ("README.md", "docs/rivals.md", "leaderboard/README.md", "leaderboard/scores.json"):
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_text("old")
    commit(other, "published")
    git(other, "push", "origin", "HEAD:main")
    git(tmp_path, "clone", "--depth", "1", origin.as_uri(), "checkout")
    assert bash(push, checkout).returncode == 0
    assert git(origin, "log", "--format=%s", "main").split("\n")[:-1] == ["published"]
    (other / "elsewhere").write_text("later")
    commit(other, "later")
    git(other, "push", "origin", "HEAD:main")
    (checkout / "leaderboard" / "README.md").write_text("new")
    (checkout / "leaderboard" / "beside").write_text("not to be committed")
    done = bash(push, checkout)
    assert done.returncode == 0, done.stderr
    subjects = git(origin, "log", "--format=%s", "main").split("\n")[:-1]
    assert subjects == ["results: Build the board from its records", "later", "published"]
    changed = git(origin, "diff", "--name-only", "main~1", "main")
    assert changed == "leaderboard/README.md\n"
    # A remote on the web is told the token of the step, which is written nowhere.
    done = subprocess.run(
        [GIT, "credential", "fill"],
        cwd=checkout,
        env=os.environ | {"TOKEN": "t0ken", "GIT_CONFIG_GLOBAL": os.devnull},
        input="protocol=https\nhost=github.com\n\n",
        check=True,
        capture_output=True,
        text=True,
    )
    assert "username=x-access-token\npassword=t0ken\n" in done.stdout


def test_actions_are_pinned_by_commit(workflow: dict[Any, Any]) -> None:
    """A tag can be moved, a commit cannot."""
    used = [
        step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step
    ]
    assert len(used) == 9
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in used)
