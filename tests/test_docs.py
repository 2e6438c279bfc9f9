"""Every Python block of the documentation runs, links lead somewhere, tables match the code.

The blocks of a page are one program, run in order in an empty folder. A block that opens with
three backticks and `python no-run` is left out; shell commands stand in `console` blocks.
"""

from __future__ import annotations

import builtins
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cbo_suite import errors
from cbo_suite.checks.optimizer_rules import OPTIMIZER_RULES
from cbo_suite.checks.problem_rules import PROBLEM_RULES
from cbo_suite.checks.rules import Rule
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.site.texts import Library
from cbo_suite.study import is_study, read_study

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^\s*```(.*)$")


def program_of(page: str) -> str:
    """Return the Python blocks of a page, each line where it stands on the page.

    The other lines are empty, so that a traceback names the line of the page.
    """
    lines, running, fenced = [], False, False
    for line in page.splitlines():
        fence = _FENCE.match(line)
        if fence:
            running, fenced = not fenced and fence[1].strip() == "python", not fenced
        lines.append(line if running and not fence else "")
    return "\n".join(lines) + "\n"


def with_python(pages: Sequence[Path]) -> list[Path]:
    """Keep the pages that have something to run."""
    return [page for page in pages if program_of(page.read_text("utf-8")).strip()]


def name_of(page: Path) -> str:
    """Name a page by its path in the repository."""
    return page.relative_to(ROOT).as_posix()


def run_program(
    program: Path, folder: Path, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder; skip the test if it needs what is not installed."""
    done = subprocess.run(
        [sys.executable, program], cwd=folder, capture_output=True, text=True, timeout=timeout
    )
    if re.search(r"^cbo_suite\.errors\.Missing(Extra|Executable)", done.stderr, re.MULTILINE):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return done


@pytest.mark.slow
@pytest.mark.parametrize("page", with_python(PAGES), ids=name_of)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    """The blocks of the page run in order, and again if there is a file to go on from."""
    program = tmp_path / f"{page.stem}.md.py"
    program.write_text(program_of(page.read_text("utf-8")), "utf-8")
    folder = tmp_path / "empty"
    folder.mkdir()
    done = run_program(program, folder)
    assert done.returncode == 0, f"{name_of(page)}:\n{done.stderr}"
    if list(folder.glob("*.jsonl")):
        again = run_program(program, folder)
        assert again.returncode == 0, f"{name_of(page)}, a second time:\n{again.stderr}"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="programs are killed by a signal")
@pytest.mark.parametrize("enough", [2, 9])
def test_the_program_of_a_study_goes_on_when_it_was_killed(enough: int, tmp_path: Path) -> None:
    """The first example of ask-tell.md, killed while points are out, ends when it is restarted."""
    page = (ROOT / "docs" / "ask-tell.md").read_text("utf-8")
    source = page.partition("```python\n")[2].partition("```")[0]
    # Slow simulations, so that some are under way, and an optimizer that takes no time.
    for before, after in (
        ("    if x[0] > 1.95:\n", "    __import__('time').sleep(x[0] / 5)\n    if x[0] > 1.95:\n"),
        ('optimizer="scbo"', 'optimizer="sobol-search"'),
    ):
        assert before in source
        source = source.replace(before, after)
    program, path = tmp_path / "program.py", tmp_path / "beam-queue.jsonl"
    program.write_text(source, "utf-8")
    killed = subprocess.Popen([sys.executable, program], cwd=tmp_path, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not is_study(path) or len(read_study(path).told) < enough:
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert read_study(path).pending
    done = run_program(program, tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    contents = read_study(path)
    assert sorted(contents.told) == list(range(1, 25))
    assert not contents.pending


def test_pages_for_newcomers_have_something_to_run() -> None:
    """The three recipes are among the pages that run."""
    names = {name_of(page) for page in with_python(PAGES)}
    assert {f"docs/{job}.md" for job in ("use-a-problem", "add-a-problem", "add-an-optimizer")} <= (
        names
    )


def test_program_keeps_line_numbers_and_leaves_out_other_blocks() -> None:
    """Only blocks that say `python` and nothing else are run."""
    page = (
        "# T\n```python\na = 1\n```\n```console\n$ ls\n```\n```python no-run\nb\n```\n```\nc\n```\n"
    )
    assert program_of(page) == "\n\na = 1" + "\n" * 11
    assert len(program_of(page).splitlines()) == len(page.splitlines())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    """A relative link names a file that exists."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    relative = [t.partition("#")[0] for t in targets if not re.match(r"[a-z]+:|#", t)]
    missing = [target for target in relative if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize(
    ("page", "rules"),
    [("add-a-problem", PROBLEM_RULES), ("add-an-optimizer", OPTIMIZER_RULES)],
)
def test_pages_list_the_rules_in_their_words(page: str, rules: Sequence[Rule[Any]]) -> None:
    """The table of rules is that of the code."""
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    table = text.partition("| rule | what it asks |\n|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == [f"| `{rule.name}` | {rule.asks} |" for rule in rules]


def test_errors_are_the_errors_of_python_that_the_page_says() -> None:
    """The table of errors that `minimize` raises."""
    text = (ROOT / "docs" / "minimize.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z]\w+)` \| `(\w+)` \|", text, re.MULTILINE)
    assert len(rows) > 9
    for name, kind in rows:
        assert issubclass(getattr(errors, name), getattr(builtins, kind)), name


def test_every_optimizer_has_a_method_card() -> None:
    """Those of the suite and those of the leaderboard, on the page that the site shows for them."""
    published = {path.stem for path in (ROOT / "leaderboard" / "runs").glob("*/*.jsonl")}
    card = Library({}, ROOT / "docs").optimizer
    known = sorted({*OPTIMIZERS, *published})
    assert [id_ for id_ in known if "Method card" not in card(id_)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_of_code_exist(page: Path) -> None:
    """Files and folders of the repository that a page names are there."""
    named = re.findall(
        r"`((?:cbo_suite|optimizers|problems|tests)/[\w./-]*)`", page.read_text("utf-8")
    )
    assert [path for path in named if not (ROOT / path).exists()] == []
