"""The report and the site with a record of MOPTA08, made with a stand-in for its executable."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cbo_suite.cli import main
from cbo_suite.cli.leaderboard import site_facts
from cbo_suite.harness import run
from cbo_suite.journal import read_journal
from cbo_suite.paper.claims import judge
from cbo_suite.paper.evidence import Evidence, condense
from cbo_suite.paper.experiments import MOPTA08
from cbo_suite.paper.figures import make_figures
from cbo_suite.paper.report import encode_claims, write_report
from cbo_suite.paper.tables import make_tables
from cbo_suite.problems.base import Problem
from cbo_suite.problems.mopta08 import Mopta08
from cbo_suite.protocols import Array, Evaluation, Space
from cbo_suite.records import Record, make_record, write_records
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from cbo_suite.site import build
from tests.problems.stand_ins import compile_c, references, values

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="executables are supervised on Linux and macOS only"
)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Run COBYLA on the stand-in; short, because every evaluation is a process."""
    folder = tmp_path_factory.mktemp("mopta08")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CBO_MOPTA08", str(compile_c(folder)))
        problem = Mopta08(references=references())
        run(problem, "cobyla", budget=20, n_init=15, seed=0, journal=folder / "run.jsonl")
    return read_run(folder / "run.jsonl")


def read_run(journal: Path) -> Record:
    """Make the record of a run that has ended."""
    contents = read_journal(journal)
    assert contents is not None
    return make_record(contents)


class Spoken(Problem):
    """What the stand-in computes, without a process for every evaluation."""

    id = MOPTA08
    space = Space(np.zeros(124), np.ones(124), 68)

    def _evaluate(self, x: Array) -> Evaluation:
        """Compute objective and constraints."""
        found = values(x)
        return Evaluation(found[:, 0], found[:, 1:])


def test_the_report_is_right_with_a_record(record: Record) -> None:
    """Figure and table have it; the claim counts it and waits for the others."""
    assert "executable_sha256" in record.facts
    runs = condense([record])
    evidence = Evidence({(MOPTA08, "cobyla"): runs})
    claim = judge(evidence)[8]
    assert claim.verdict == "cannot be told"
    assert claim.why.startswith("1 of 90 runs; its executable is third-party software")
    figures = make_figures(evidence)
    assert figures.keys() == {"mopta08"}
    assert figures["mopta08"].axes[0].get_title() == "124D MOPTA08\n(1 of 150 runs)"
    table = make_tables(evidence)["mopta08"]
    [row] = table.rows
    assert row[:3] == (MOPTA08, "COBYLA", f"{runs.num_feasible}/1")
    report = write_report(evidence, judge(evidence), {"mopta08": table}, figures)
    assert "### 9. MOPTA08: cannot be told" in report
    assert "![MOPTA08](figures/mopta08.png)" in report


def test_the_report_is_right_without_any() -> None:
    """No figure and no table, and the claim says what is missing."""
    evidence = Evidence({})
    assert make_figures(evidence) == {}
    assert "mopta08" not in make_tables(evidence)
    report = write_report(evidence, judge(evidence), {}, [])
    assert "Cannot be told: 0 of 90 runs; its executable is third-party software" in report


def test_the_site_puts_it_beside_the_paper(record: Record, tmp_path: Path) -> None:
    """The page of the problem has the paper's numbers and that of the record."""
    (tmp_path / "claims.json").write_bytes(encode_claims(judge(Evidence({})), [], {}))
    page = build(make_board([record], load_references()), paper=tmp_path)[
        f"problem/{MOPTA08}.html"
    ].decode()
    assert "In the paper" in page
    assert "238.8" in page
    assert "11/30" in page
    assert "221.0700227" in page


def test_the_site_has_its_page_without_records(tmp_path: Path) -> None:
    """With the paper's numbers, the story of the best known value, and nothing of ours."""
    (tmp_path / "claims.json").write_bytes(encode_claims(judge(Evidence({})), [], {}))
    board = make_board([], load_references())
    pages = build(board, paper=tmp_path, docs=DOCS, known=site_facts(board)["known"])
    page = pages[f"problem/{MOPTA08}.html"].decode()
    for text in ("Nobody has published runs", "In the paper", "236.7", "11/30", "no runs"):
        assert text in page
    assert "221.0700227" in page
    assert "About the problem" in page
    assert f'<a href="problem/{MOPTA08}.html">' in pages["problems.html"].decode()


def test_records_of_a_whole_run_go_the_way_of_all_others(tmp_path: Path) -> None:
    """From the folder of records to figure, table and claims."""
    run(Spoken(), "random-search", seed=0, journal=tmp_path / "run.jsonl")
    record = read_run(tmp_path / "run.jsonl")
    assert (record.task.budget, record.task.n_init) == (2000, 130)
    path = tmp_path / "runs" / MOPTA08 / "random-search.jsonl"
    path.parent.mkdir(parents=True)
    write_records(path, [record])

    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "paper")]
    places += ["--measurements", str(tmp_path / "none")]
    done = CliRunner().invoke(main, ["paper", "build", *places])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "paper" / "figures" / "mopta08.pdf").exists()
    table = (tmp_path / "paper" / "tables" / "mopta08.md").read_text("utf-8")
    assert "| random search | 0/1 |" in table or "| random search | 1/1 |" in table
    claims = json.loads((tmp_path / "paper" / "claims.json").read_bytes())
    assert claims["problems"][MOPTA08]["rows"][0]["best"] == 236.7
