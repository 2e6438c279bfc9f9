"""Pages of the site: what each of them shows, put into its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from cbo_suite._version import __version__
from cbo_suite.leaderboard.looks import Look, looks_of, shown_first
from cbo_suite.leaderboard.markdown_page import nobody_ranked
from cbo_suite.leaderboard.number_format import (
    fixed,
    measured,
    number,
    row_texts,
    whole_share,
)
from cbo_suite.scoring.board import Board, ProblemBoard
from cbo_suite.scoring.runs import family
from cbo_suite.scoring.tracks import LEAST_RUNS
from cbo_suite.site.catalogue import Listed, chart_data, drawn_of, suite_charts, table
from cbo_suite.site.compare_page import comparison_data
from cbo_suite.site.data_page import SCHEMA, curves_csv, encode_schema, parts
from cbo_suite.site.optimizer_page import optimizer_context
from cbo_suite.site.paper_page import Paper, put_beside
from cbo_suite.site.ranking_page import NUM_LEADERS, Series, look_data, ranking_context
from cbo_suite.site.texts import (
    Library,
    as_json,
    interval,
    page_name,
    sketch,
    small_interval,
    source_address,
    title_of,
)

ASSETS = (
    "bootstrap.js",
    "charts.js",
    "compare.js",
    "core.js",
    "icon.svg",
    "optimizer.js",
    "problem.js",
    "ranking.js",
    "site.css",
    "statistics.js",
    "suites.js",
    "vega-licences.txt",
    "vega.js",
)
# Problem to optimizer to the points of a path on a map of side 1.
Trails = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
# Points of time that the tables beside the charts show.
NUM_CHECKPOINTS = 8


class Bests(NamedTuple):
    """What is shown of the best runs beside their scores.

    Attributes:
        points: Problem to the best point of all runs.
        trails: Best paths of optimizers, to be drawn on the drawings of their problems.
    """

    points: Mapping[str, Sequence[float]] = MappingProxyType({})
    trails: Trails = MappingProxyType({})


def make_pages(
    board: Board,
    library: Library,
    known: Sequence[Listed] = (),
    suites: Mapping[str, tuple[str, Sequence[str]]] = MappingProxyType({}),
    paper: Paper | None = None,
    bests: Bests | None = None,
    records: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Make all files of the site, by their path in it; arguments as `cbo_suite.site.build`."""
    points, trails = bests or Bests()
    environment = _environment()
    environment.globals["has_paper"] = paper is not None
    environment.globals["source"] = source_address()
    environment.globals["least_runs"] = LEAST_RUNS
    environment.globals["version"] = __version__
    texts = {problem.problem: row_texts(problem) for problem in board.problems}
    made = {f"assets/{name}": _asset(name) for name in ASSETS}
    tracks, looks = _tracks(board), looks_of(_names(board))
    methods = {name: name for name in _names(board)}
    methods |= {row.optimizer: row.method for track in board.tracks for row in track.rows}

    def add(path: str, template: str, **context: Any) -> None:
        """Make one page; `root` leads from it to the top of the site."""
        root = "../" * path.count("/")
        html = environment.get_template(template).render(board=board, root=root, **context)
        made[path] = html.encode()

    def show(problem: str, family_: str) -> dict[str, Any]:
        """Gather what a page shows of how a problem looks; a picture joins the site."""
        name, drawing = page_name(family_), sketch(problem)
        picture = library.picture(family_)
        if picture and not drawing:
            made[f"assets/{name}.png"] = picture
        caption = title_of(drawing) if drawing else library.caption(family_)
        picture_name = f"{name}.png" if picture else ""
        return {"sketch": drawing, "caption": caption, "picture": picture_name}

    add("index.html", "index.html", library=library, **ranking_context(board, library, looks))
    charts = suite_charts(board, suites)
    add(
        "problems.html",
        "problems.html",
        rows=table(board, library.titles, known),
        tracks=tracks,
        suites=charts,
        drawn={chart.id: drawn_of(chart, methods) for chart in charts},
        looks=looks,
        data=as_json(chart_data(charts, looks, methods)),
    )
    add("compare.html", "compare.html", data=as_json(comparison_data(board)), names=_names(board))
    add("scoring.html", "scoring.html")
    add("data.html", "data.html", parts=parts(), schema=SCHEMA)
    made[SCHEMA] = encode_schema()
    published = paper.report.problems if paper else {}
    if paper:
        made |= {f"assets/paper-{id_}.png": data for id_, data in paper.pictures.items()}
        add("paper.html", "paper.html", paper=paper.report, sizes=paper.sizes)
    with_runs = {problem.problem for problem in board.problems}
    for listed in known:
        # A family, which is no problem of its own, has no budget.
        if listed.budget is None or listed.id in with_runs:
            continue
        printed = published.get(listed.id)
        add(
            f"problem/{page_name(listed.id)}.html",
            "without_runs.html",
            problem=listed,
            tracks=tracks.get(listed.id, []),
            text=library.problem(listed.id, family(listed.id)),
            published=printed,
            beside=put_beside([], printed) if printed else [],
            has_trails=False,
            **show(listed.id, family(listed.id)),
        )
    for problem in board.problems:
        printed = published.get(problem.problem)
        names = [row.optimizer for row in problem.rows]
        own = [name for name in names if methods[name] == name]
        shown = shown_first(own or names, NUM_LEADERS)
        made[f"problem/{page_name(problem.problem)}.csv"] = curves_csv(problem)
        add(
            f"problem/{page_name(problem.problem)}.html",
            "problem.html",
            problem=problem,
            tracks=tracks.get(problem.problem, []),
            title=library.title(problem.problem),
            text=library.problem(problem.problem, problem.family),
            **show(problem.problem, problem.family),
            data=as_json(_curves(problem, looks, trails)),
            published=printed,
            beside=put_beside(problem.rows, printed) if printed else [],
            texts=texts[problem.problem],
            series=[
                Series(
                    name, looks[name].colour + 1, name in shown, methods[name] in {*names} - {name}
                )
                for name in names
            ],
            checkpoints=_checkpoints(len(problem.evaluations)),
            twins=_twins(problem),
            found=problem.best_found,
            point=points.get(problem.problem),
            has_trails=problem.problem in trails,
            records=[(name, records.get(f"{problem.problem}/{name}", ())) for name in names],
            new_best=[found for found in board.new_best if found.problem == problem.problem],
        )
    for name in _names(board):
        add(
            f"optimizer/{page_name(name)}.html",
            "optimizer.html",
            method=methods[name],
            names=list(methods),
            variants=[other for other in methods if methods[other] == name != other],
            **optimizer_context(name, board, texts, methods, library, looks[name]),
        )
    return made


def _environment() -> Environment:
    """Make the environment of the templates; all values are escaped unless they are markup."""
    environment = Environment(
        loader=PackageLoader("cbo_suite.site", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        measured=measured,
        fixed=fixed,
        whole_share=whole_share,
        interval=interval,
        small_interval=small_interval,
        page=page_name,
        nobody_ranked=nobody_ranked,
    )
    return environment


def _asset(name: str) -> bytes:
    """Read a file that is part of every site."""
    return files("cbo_suite.site").joinpath("assets", name).read_bytes()


def _names(board: Board) -> list[str]:
    """Name all optimizers, in the order of the rankings, then those that none has."""
    ranked = chain(board.overall, *(track.rows for track in board.tracks))
    everybody = sorted({row.optimizer for problem in board.problems for row in problem.rows})
    return list(dict.fromkeys([*(row.optimizer for row in ranked), *everybody]))


def _tracks(board: Board) -> dict[str, list[str]]:
    """Name the tracks of each problem that is in one."""
    found: dict[str, list[str]] = {}
    for track in board.tracks:
        for problem in track.problems:
            found.setdefault(problem, []).append(track.track)
    return found


def _curves(problem: ProblemBoard, looks: Mapping[str, Look], trails: Trails) -> dict[str, Any]:
    """Gather what the charts of a problem draw."""
    own = trails.get(problem.problem, {})
    return {
        "evaluations": problem.evaluations,
        "n_init": problem.n_init,
        "best": problem.best,
        "rows": [
            {
                "optimizer": row.optimizer,
                "look": look_data(looks[row.optimizer]),
                "trail": own.get(row.optimizer),
                "paper_mean": row.curves.paper_mean,
                "paper_error": row.curves.paper_error,
                "regret_mean": row.curves.regret_mean,
                "regret_error": row.curves.regret_error,
                "targets": row.curves.targets,
                "feasible": row.curves.feasible,
            }
            for row in problem.rows
        ],
    }


def _twins(problem: ProblemBoard) -> list[list[str]]:
    """Find optimizers whose runs cannot be told apart, because one line hides the others."""
    found: dict[bytes, list[str]] = {}
    for row in problem.rows:
        results = msgspec.json.encode((row.outcomes, row.curves))
        found.setdefault(results, []).append(row.optimizer)
    return [names for names in found.values() if len(names) > 1]


def _checkpoints(length: int) -> list[int]:
    """Choose places of a grid of this length for the tables beside the charts, the last too."""
    count = min(NUM_CHECKPOINTS, length)
    return sorted({round((i + 1) * length / count) - 1 for i in range(count)})
