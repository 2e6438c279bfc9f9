"""Habits that a machine can watch: safe code, small files, pinned dependencies and actions."""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for room in ("cbo_suite", "problems", "optimizers", "tests")
    for path in (ROOT / room).rglob("*.py")
)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What runs foreign bytes or trusts a foreign host, in code without comments and texts.
UNSAFE = re.compile(
    r"\b(?:cloud)?pickle\b|\bmarshal\b|\byaml\.load\b|\btorch\.load\b|\bos\.system\b"
    r"|(?<![\w.])(?:eval|exec)\(|\b(?:shell|allow_pickle)=True\b|\bverify=False\b"
)
# Folders of somebody's own machine.
OWN_FOLDER = re.compile(r"(?<![\w.:~])/(?:home|root|work|opt|Users|mnt)/|\b[A-Z]:\\\\?Users\b")


def code_only(text: str) -> str:
    """Return Python without comments and string literals, and without spaces around signs."""
    # From Python 3.12 on an f-string comes in parts.
    part = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
    dropped = (tokenize.COMMENT, tokenize.STRING, part)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    words = " ".join(token.string for token in tokens if token.type not in dropped)
    return re.sub(r" ?([=.(]) ?", r"\1", words)


def text_files() -> Iterator[Path]:
    """Give every text file of the repository."""
    kinds = {".py", ".md", ".ipynb", ".json", ".jsonl", ".toml", ".txt", ".yml", ".yaml", ".cff"}
    names = {"Makefile", "LICENSE", "run", ".importlinter", ".gitignore"}
    rooms = (
        ".ci",
        ".github",
        "cbo_suite",
        "docs",
        "leaderboard",
        "optimizers",
        "problems",
        "tests",
    )
    paths = [*ROOT.glob("*"), *(path for room in rooms for path in (ROOT / room).rglob("*"))]
    for path in sorted(paths):
        if path.is_file() and (path.suffix in kinds or path.name in names):
            yield path


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "yaml . load(text)",
        "eval ('1')",
        "x = exec(code)",
        "subprocess.run(command, shell = True)",
        "requests.get(url, verify=False)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_gate_sees_unsafe_code(line: str) -> None:
    """The gate below catches each of these, however it is spaced."""
    assert UNSAFE.search(code_only(line))


def test_gate_lets_safe_code_pass() -> None:
    """A model's `.eval()`, `evaluate(` and words in comments and texts are no matter."""
    assert not UNSAFE.search(code_only('model.eval()  # no pickle\nevaluate(x)\nname = "pickle"'))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_source_is_safe_and_short(path: Path) -> None:
    """No source runs foreign bytes or trusts blindly, and none has 400 lines."""
    text = path.read_text()
    found = UNSAFE.search(code_only(text))
    assert found is None, f"{found} in {path}"
    assert text.count("\n") < 400


def test_no_folder_of_a_single_machine_is_named() -> None:
    """Nothing points into a folder that exists on one machine only."""
    found = {
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in text_files()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if OWN_FOLDER.search(line)
    }
    assert not found


def needed_distributions() -> set[str]:
    """Walk the requirements of the extras `all` and `dev` and name every distribution."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = {"": project["dependencies"], **project["optional-dependencies"]}
    todo = [("cbo-suite", extra) for extra in ("", "all", "dev")]
    seen: set[tuple[str, str]] = set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        lines = own[extra] if name == "cbo-suite" else distribution(name).requires or []
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                wanted = canonicalize_name(requirement.name)
                todo += [(wanted, wanted_extra) for wanted_extra in ("", *requirement.extras)]
    return {name for name, _ in seen} - {"cbo-suite"}


def test_every_dependency_is_pinned_and_installed_as_pinned() -> None:
    """constraints.txt has every dependency, direct or not, at the version that is installed."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    pinned: dict[str, SpecifierSet] = {canonicalize_name(pin.name): pin.specifier for pin in pins}
    assert all(re.fullmatch(r"==[0-9][\w.!]*", str(specifier)) for specifier in pinned.values())
    needed = needed_distributions()
    assert len(needed) > 80
    assert needed - set(pinned) == set()
    # A pin of 2.13.0 is met by the build 2.13.0+cpu.
    differing = {n: version(n) for n in needed if not pinned[n].contains(version(n))}
    assert differing == {}


def test_there_are_workflows() -> None:
    """The three workflows are where the tests below look for them."""
    assert [path.name for path in WORKFLOWS] == ["leaderboard.yml", "nightly.yml", "test.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_names_tests_that_exist(path: Path) -> None:
    """A test that has moved is not left out unseen."""
    named = set(re.findall(r"\btests/[\w/]+(?:\.py)?", path.read_text()))
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_trusts_nobody(path: Path) -> None:
    """Actions are pinned by commit, permissions start at reading, no secret is in reach."""
    text = path.read_text()
    used = re.findall(r"uses: *(.*)", text)
    assert used
    for line in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    assert re.search(r"^permissions:\n  contents: read\n", text, re.MULTILINE)
    assert "pull_request_target" not in text
    assert not re.search(r"\$\{\{ *secrets", text)
    assert text.count("runs-on:") == text.count("timeout-minutes:")
    checkouts = re.findall(
        r"uses: actions/checkout@.*\n( +with:\n +persist-credentials: false)?", text
    )
    assert all(checkouts)
