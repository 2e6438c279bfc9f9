"""Figures: the numbers they show, the look of a series in every panel, the files they become."""

from __future__ import annotations

import builtins
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from cbo_suite.cli import main
from cbo_suite.errors import MissingExtra, RecordError
from cbo_suite.journal import read_journal
from cbo_suite.leaderboard import read_folder
from cbo_suite.plots import Curve, Panel, draw, make_panels, save
from cbo_suite.records import Record, make_record, write_records
from cbo_suite.scoring.references import load_references
from tests.make_records import make

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "leaderboard" / "runs"
PNG, PDF = b"\x89PNG\r\n\x1a\n", b"%PDF-"


@pytest.fixture(scope="module")
def published() -> list[Record]:
    """Real runs: those of the leaderboard on two problems."""
    return [
        record
        for record in read_folder(RUNS)
        if record.task.problem in ("pressure-vessel-4d-v1", "toy-2d-v1")
        and record.task.optimizer in ("cobyla", "random-search", "scbo")
    ]


def test_curves_are_mean_and_standard_error_by_the_papers_rule() -> None:
    """By hand: infeasible runs have the largest feasible value of all, at every evaluation."""
    runs = [
        make([None, 4.0, 2.0], seed=0, optimizer="a"),
        make([None, None, 6.0], seed=1, optimizer="a"),
        make([10.0, 1.0, 3.0], seed=0, optimizer="b"),
    ]
    (panel,) = make_panels(runs)
    first, second = panel.curves
    assert (first.optimizer, first.runs, second.optimizer) == ("a", 2, "b")
    assert first.mean.tolist() == [10.0, 7.0, 4.0]
    # Two values x and y have the standard error |x - y| / 2.
    assert first.error.tolist() == pytest.approx([0.0, 3.0, 2.0], rel=1e-15)
    assert second.mean.tolist() == [10.0, 1.0, 1.0]
    assert np.isnan(second.error).all()


def test_regret_and_logarithm_are_relative_to_the_references() -> None:
    """Regret is scaled to best and worst; with a logarithm the paper's score is a distance."""
    reference = msgspec.structs.replace(load_references()["toy-2d-v1"], best=1.0, worst=11.0)
    known = {"some-1d-v1": reference}
    runs = [make([None, 6.0, 2.0])]
    (panel,) = make_panels(runs, "regret", references=known)
    assert panel.curves[0].mean.tolist() == [1.0, 0.5, 0.1]
    (panel,) = make_panels(runs, "paper", log=True, references=known)
    assert panel.curves[0].mean.tolist() == [5.0, 5.0, 1.0]
    with pytest.raises(RecordError, match="some-1d-v1 has no reference values"):
        make_panels(runs, "regret")
    with pytest.raises(RecordError, match="one budget"):
        make_panels([*runs, make([1.0], seed=1)], "regret", references=known)


def test_a_series_looks_the_same_in_every_panel(published: list[Record]) -> None:
    """Colour, marker and dash belong to the optimizer; the legend names each once."""
    figure = draw(make_panels(published))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cobyla", "random-search", "scbo"]
    looks = [
        [(line.get_color(), line.get_marker()) for line in axes.get_lines()[:3]]
        for axes in figure.axes
    ]
    assert looks[0] == looks[1]
    assert len(set(looks[0])) == 3
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["pressure-vessel-4d-v1", "toy-2d-v1"]


def test_twenty_optimizers_can_be_told_apart() -> None:
    """Where colours repeat, markers and dashes do not."""
    runs = [make([3.0, 2.0, 1.0], optimizer=f"o{i:02}") for i in range(20)]
    (axes,) = draw(make_panels(runs)).axes
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == 20


def test_an_optimizer_looks_the_same_in_every_figure() -> None:
    """Whoever else is drawn: the methods of the paper, their variants, and others."""
    names = ["scbo", "cei", "scbo-ei", "my-search", "cobyla", "cma-es", "pesc", "slack"]

    def look(name: str, others: list[str]) -> tuple[object, ...]:
        runs = [make([3.0, 2.0, 1.0], optimizer=optimizer) for optimizer in {name, *others}]
        (axes,) = draw(make_panels(runs)).axes
        place = sorted({name, *others}).index(name)
        line = axes.lines[place]
        return line.get_color(), line.get_marker(), line.get_linestyle()

    for name in names:
        assert look(name, []) == look(name, names)
    # Variants that choose points as their method have its colour, others have another.
    assert look("scbo-untransformed", [])[0] == look("scbo", [])[0]
    assert look("scbo-untransformed", []) != look("scbo", [])
    assert look("scbo-ei", [])[0] != look("scbo", [])[0]
    assert len({look(name, names)[0] for name in names if "-" not in name}) == 5


def test_highlighted_optimizers_stand_out() -> None:
    """The others are grey, thin and not in the legend."""
    runs = [make([3.0, 2.0, 1.0], optimizer=f"o{i:02}") for i in range(5)]
    figure = draw(make_panels(runs), highlight=["o01"])
    grey = [line for line in figure.axes[0].lines if line.get_color() == "0.8"]
    assert len(grey) == 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["o01"]


def test_fonts_of_a_pdf_are_true_type(tmp_path: Path) -> None:
    """Publishers refuse Type 3."""
    save(draw(make_panels([make([3.0, 2.0, 1.0])])), tmp_path / "figure.pdf")
    data = (tmp_path / "figure.pdf").read_bytes()
    assert b"/CIDFontType2" in data
    assert b"/Type3" not in data


@pytest.mark.parametrize("panels", [1, 6])
@pytest.mark.parametrize("length", [5, 30, 80])
def test_the_legend_lies_within_the_figure(panels: int, length: int) -> None:
    """25 names of any length: in as many lines as they need, and the panels keep their size."""
    names = [f"solver-{i:02}".ljust(length, "w") for i in range(25)]
    records = [
        make([3.0, 2.0, 1.0], optimizer=name, problem=f"some-{k}d-v1")
        for name in names
        for k in range(panels)
    ]
    figure = draw(make_panels(records))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 25
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    lowest = min(axes.get_window_extent().y0 for axes in figure.axes)
    assert box.y1 < lowest
    assert figure.axes[0].get_window_extent().height > 1.2 * figure.dpi
    if length <= 30:
        assert figure.get_size_inches()[0] <= 7.4


def test_the_drawn_band_is_one_standard_error(published: list[Record]) -> None:
    """What is drawn of real runs is what was computed, and the range shows it."""
    panels = make_panels(published)
    axes = draw(panels).axes[1]
    curve = panels[1].curves[0]
    line, band = axes.get_lines()[0], axes.collections[0]
    mean, error = curve.mean[9:], curve.error[9:]  # from the last point of the design on
    assert np.array_equal(np.asarray(line.get_ydata()), mean)
    outline = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert outline.min() == (mean - error).min()
    assert outline.max() == (mean + error).max()
    low, high = axes.get_ylim()
    assert low < curve.mean[-1] - curve.error[-1]
    assert high > (curve.mean + curve.error)[10:].max()


def test_a_problem_without_feasible_runs_says_so() -> None:
    """An empty panel would look like a mistake."""
    (axes,) = draw(make_panels([make([None, None])])).axes
    assert [text.get_text() for text in axes.texts] == ["no feasible point"]


@pytest.mark.parametrize("options", [[], ["--log", "--score", "regret"]])
def test_command_writes_pdf_and_png(options: list[str], tmp_path: Path) -> None:
    """Both kinds at once, and the same bytes again from the same records."""
    pdf, png = tmp_path / "new" / "figure.pdf", tmp_path / "figure.png"
    problems = ["--problems", "toy-2d,welded-beam-4d-v1"]
    command = ["plot", str(RUNS), "--out", str(pdf), "--out", str(png), *problems, *options]
    contents = []
    for _ in range(2):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        contents.append((pdf.read_bytes(), png.read_bytes()))
    assert contents[0] == contents[1]
    assert contents[0][0].startswith(PDF)
    assert contents[0][1].startswith(PNG)
    assert len(contents[0][1]) > 20_000


def test_command_takes_single_files_and_names_what_is_missing(tmp_path: Path) -> None:
    """Files, filters and mistakes: each mistake is a sentence."""
    file, out = RUNS / "toy-2d-v1" / "scbo.jsonl", ["--out", str(tmp_path / "figure.png")]
    assert CliRunner().invoke(main, ["plot", str(file), *out]).exit_code == 0
    for arguments, message in (
        (["--optimizers", "pesc"], "no records of pesc"),
        (["--problems", "ackley-10d"], "no records on ackley-10d"),
    ):
        done = CliRunner().invoke(main, ["plot", str(file), *out, *arguments])
        assert done.exit_code == 1
        assert message in done.output
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there are no records" in CliRunner().invoke(main, ["plot", str(empty), *out]).output
    done = CliRunner().invoke(main, ["plot", str(file), "--out", str(tmp_path / "figure.doc")])
    assert "ends in .pdf or .png" in done.output
    assert done.exit_code == 1


def test_command_takes_the_folder_of_a_campaign(tmp_path: Path) -> None:
    """And that of a problem in it: journals lie beside the records and are passed over."""
    for problem in ("some-1d-v1", "more-1d-v1"):
        record = make([3.0, 2.0, 1.0], problem=problem)
        write_records(tmp_path / "runs" / problem / "own.jsonl", [record])
    journals = tmp_path / "runs" / "some-1d-v1" / "own"
    journals.mkdir()
    (journals / "0.jsonl").write_text('{"type":"header"}\n')
    for folder in (tmp_path / "runs", tmp_path / "runs" / "some-1d-v1"):
        out = str(tmp_path / f"{folder.name}.png")
        done = CliRunner().invoke(main, ["plot", str(folder), "--out", out])
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(("low", "scale"), [(3.0, "linear"), (0.1, "log")])
def test_a_logarithmic_axis_spans_a_decade_or_more(low: float, scale: str) -> None:
    """Shorter ones would have ticks without round numbers; curves begin where the design ends."""
    mean = np.concatenate([np.full(10, 100.0), np.linspace(9.0, low, 90)])
    panel = Panel("toy-2d-v1", [Curve("scbo", mean, np.zeros(100), 3)], 11)
    axes = draw([panel], log=True).axes[0]
    assert axes.get_yscale() == scale
    courses = [np.array(line.get_data()) for line in axes.get_lines()]
    (course,) = (found for found in courses if found.shape[1] > 2)
    assert course[:, 0].tolist() == [11.0, 9.0]
    assert axes.get_ylim()[1] < 20


def test_log_needs_references(tmp_path: Path) -> None:
    """A problem of one's own has none; the message says what to do."""
    path = tmp_path / "some.jsonl"
    write_records(path, [make([1.0])])
    done = CliRunner().invoke(main, ["plot", str(path), "--log", "--out", str(tmp_path / "f.png")])
    assert done.exit_code == 1
    assert "leave it out with --problems" in done.output


def test_matplotlib_is_asked_for_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the error is the line to type; nothing else needs it."""
    genuine = builtins.__import__

    def without(name: str, *args: Any, **settings: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return genuine(name, *args, **settings)

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    panels = make_panels([make([1.0, 2.0])])
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[plots\]"'):
        draw(panels)


def test_every_published_problem_has_references(published: list[Record]) -> None:
    """So the logarithmic figure of the leaderboard can be drawn."""
    assert {record.task.problem for record in published} <= load_references().keys()


def test_save_makes_the_folder(tmp_path: Path) -> None:
    """A figure goes where it is wanted."""
    path = tmp_path / "a" / "b" / "figure.PNG"
    save(draw(make_panels([make([1.0, 2.0])])), path)
    assert path.read_bytes().startswith(PNG)


def test_a_suite_is_drawn_in_one_panel(tmp_path: Path) -> None:
    """The command says what it leaves out and where each ends; same records, same bytes."""
    files = [tmp_path / name for name in ("a.png", "b.png", "c.pdf")]
    outputs = [argument for path in files for argument in ("--out", str(path))]
    names = "cobyla,random-search,scbo"
    command = ["plot", str(RUNS), "--suite", "quick", "--ecdf", "--optimizers", names, *outputs]
    done = CliRunner().invoke(main, [*command, "--highlight", "scbo"])
    assert done.exit_code == 0, done.output
    assert re.search(r"^scbo: \d+\.\d % of the targets$", done.output, re.MULTILINE)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[2].read_bytes().startswith(PDF)
    wrong = CliRunner().invoke(
        main, ["plot", str(RUNS), "--suite", "bbob-constrained", "--out", "x.png"]
    )
    assert "there are no records on problems of bbob-constrained" in wrong.output


def test_a_family_is_drawn_with_reference_values_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions of COCO, run for real, by the file that `cbo references` writes."""
    pytest.importorskip("cocoex")
    monkeypatch.chdir(tmp_path)

    def cbo(*words: str) -> str:
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        return done.output

    problems = [f"bbob-constrained-f{k}-10d-i1-v1" for k in (1, 2)]
    for problem in problems:
        cbo("references", problem, "--out", "values.json", "--samples", "512", "--starts", "2")
        cbo("run", problem, "cobyla", "--journal", f"{problem}.jsonl")
        contents = read_journal(tmp_path / f"{problem}.jsonl")
        assert contents is not None
        write_records(tmp_path / "runs" / problem / "cobyla.jsonl", [make_record(contents)])
    command = ("plot", "runs", "--suite", "bbob-constrained", "--ecdf", "--out", "figure.png")
    missing = CliRunner().invoke(main, command)
    assert "`cbo references` makes a file of them for --references" in missing.output
    assert missing.exit_code == 1
    drawn = cbo(*command, "--references", "values.json")
    share = re.search(r"^cobyla: (\d+\.\d) % of the targets$", drawn, re.MULTILINE)
    assert share is not None
    assert float(share[1]) > 10
    assert (tmp_path / "figure.png").read_bytes().startswith(PNG)


def test_what_cannot_be_put_together_is_refused(tmp_path: Path) -> None:
    """Without reference values there are no targets."""
    path = tmp_path / "some-1d-v1" / "a.jsonl"
    path.parent.mkdir()
    write_records(path, [make([1.0, 0.5], optimizer="a")])
    done = CliRunner().invoke(main, ["plot", str(tmp_path), "--ecdf", "--out", "x.png"])
    assert done.exit_code == 1
    assert "without reference values, so left out: some-1d-v1" in done.output
    assert "there is nothing to put together" in done.output
