"""The page on the paper, and the paper's numbers on the pages of problems."""

from __future__ import annotations

import re
from html import unescape
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from cbo_suite.errors import RecordError
from cbo_suite.paper.build import build as build_paper
from cbo_suite.paper.claims import judge
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import KEANE, MOPTA08, PERTURBATIONS
from cbo_suite.paper.report import encode_claims
from cbo_suite.scoring.board import Board
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from cbo_suite.site import build
from tests.make_records import make
from tests.paper.invented import invent_evidence

LUNAR = "lunar-lander-m30-v1"


def text_of(page: bytes) -> str:
    """Return the words of a page, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.decode())).split())


@pytest.fixture(scope="module")
def small_board() -> Board:
    """Score two runs of SCBO on problems that the paper gives numbers of, and on one other."""
    rows: dict[str, list[float | None]] = {
        LUNAR: [None, -300.0],
        MOPTA08: [None, 234.5],
        "toy-2d-v1": [0.9, 0.7],
    }
    records = [
        make(values, problem=problem, optimizer="scbo", seed=seed)
        for problem, values in rows.items()
        for seed in range(2)
    ]
    return make_board(records, load_references())


def test_without_a_report_there_is_no_page(small_board: Board, tmp_path: Path) -> None:
    """No page, no link to it, no numbers of the paper."""
    pages = build(small_board, paper=tmp_path)
    assert "paper.html" not in pages
    assert b"paper.html" not in pages["index.html"]
    assert b"In the paper" not in pages[f"problem/{LUNAR}.html"]
    assert pages == build(small_board)


def test_the_page_shows_claims_verdicts_and_artefacts(small_board: Board, tmp_path: Path) -> None:
    """Every claim with its verdict; figures are part of the site, as tables what has none."""
    whole = invent_evidence(right=True)
    few = {(KEANE, id_): whole.runs[KEANE, id_] for id_ in PERTURBATIONS}
    build_paper(whole._replace(runs=few), tmp_path)
    pages = build(small_board, paper=tmp_path)
    page = text_of(pages["paper.html"])
    for judgement in judge(whole._replace(runs=few)):
        claim = judgement.claim
        assert f"{claim.number} {claim.title} {judgement.verdict}" in page
    assert "12 Perturbing few variables reproduced" in page
    assert "1 Tension-compression string cannot be told 0 of 210 runs" in page
    assert b'src="assets/paper-perturbation.png"' in pages["paper.html"]
    assert "problem the paper ours restarts runs evaluations of a run toy-2d-v1 42" in page
    assert b'id="table-restarts"' in pages["paper.html"]
    assert b'id="table-perturbation"' not in pages["paper.html"]
    picture = Image.open(BytesIO(pages["assets/paper-perturbation.png"]))
    size = f'width="{picture.width // 2}" height="{picture.height // 2}"'
    assert size.encode() in pages["paper.html"]
    assert b'<a href="paper.html">Paper</a>' in pages["index.html"]
    assert b'<a href="../paper.html">Paper</a>' in pages["problem/toy-2d-v1.html"]


def test_problem_pages_show_the_paper_s_numbers(small_board: Board, tmp_path: Path) -> None:
    """Beside ours: rewards for the lunar lander, objectives for MOPTA08, nothing elsewhere."""
    (tmp_path / "claims.json").write_bytes(encode_claims(judge(Evidence({})), [], {}))
    pages = build(small_board, paper=tmp_path)
    lunar = text_of(pages[f"problem/{LUNAR}.html"])
    assert "(Section 4.4, Table 1)" in lunar
    assert "scbo 316.2 300.00 295.2 300.00 311.8 300.00 26/30 2/2" in lunar
    assert "random-search NA NA NA NA NA NA 0/30 no runs" in lunar
    mopta08 = text_of(pages[f"problem/{MOPTA08}.html"])
    assert "scbo 236.7 234.50 NA 234.50 NA 234.50 30/30 2/2" in mopta08
    assert "cei no feasible point below 300" in mopta08
    assert "In the paper" not in text_of(pages["problem/toy-2d-v1.html"])


def test_another_file_is_refused(small_board: Board, tmp_path: Path) -> None:
    """What is no report is named."""
    (tmp_path / "claims.json").write_text("{}")
    with pytest.raises(RecordError, match="is no report of `cbo paper build`"):
        build(small_board, paper=tmp_path)
