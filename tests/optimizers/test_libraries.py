"""Other people's optimizers: through our interface they do what they do by themselves.

Where a library can be made to repeat itself, its own loop gives the same points; otherwise a
number of its documentation is reached.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite import Evaluation, Space
from cbo_suite.errors import InvalidTask, MissingExtra
from cbo_suite.journal import read_journal
from cbo_suite.optimizers.botorch_logcei import BotorchLogCEI
from cbo_suite.optimizers.egobox import Egobox
from cbo_suite.optimizers.isres import Isres
from cbo_suite.optimizers.nomad import Nomad
from cbo_suite.optimizers.optuna_samplers import OptunaGP, OptunaTPE
from cbo_suite.protocols import Array
from cbo_suite.registry import make_optimizer
from tests.optimizers.advancing import SQUARE, advance, corner, draw, least

# Id to module, distribution and extra.
LIBRARIES = {
    "egobox": ("egobox", "egobox", "egobox"),
    "optuna-gp": ("optuna", "optuna", "optuna"),
    "optuna-tpe": ("optuna", "optuna", "optuna"),
    "botorch-logcei": ("botorch", "botorch", "botorch"),
    "nomad": ("PyNomad", "PyNomadBBO", "nomad"),
    "bayesqp": ("bayesqp", "bayesqp", "bayesqp"),
    "isres": ("pymoo.algorithms.soo.nonconvex.isres", "pymoo", "pymoo"),
}


def test_egobox_finds_the_minima_of_its_examples() -> None:
    """G24 of its tests has the minimum -5.5080, the xsinx of its documentation -15.1251."""

    def g24(x: Array) -> Evaluation:
        a, b = x.T
        first = -2 * a**4 + 8 * a**3 - 8 * a**2 + b - 2
        second = -4 * a**4 + 32 * a**3 - 88 * a**2 + 96 * a + b - 36
        return Evaluation(-a - b, np.column_stack([first, second]))

    def xsinx(x: Array) -> Evaluation:
        shifted = x[:, 0] - 3.5
        return Evaluation(shifted * np.sin(shifted / np.pi), np.empty((len(x), 0)))

    space = Space([0.0, 0.0], [3.0, 4.0], 2)
    points = advance(Egobox(space, budget=40, seed=0), g24, draw(space, 5), 35)
    assert least(g24, points) == pytest.approx(-5.5080, abs=2e-3)

    line = Space([0.0], [25.0])
    points = advance(Egobox(line, budget=18), xsinx, np.array([[0.0], [7.0], [25.0]]), 15)
    assert least(xsinx, points) == pytest.approx(-15.1251, abs=1e-3)


@pytest.mark.parametrize("n", [1, 2])
def test_egobox_gives_the_points_of_its_own_loop(n: int) -> None:
    """The library asked by itself, with all data and the same seeds, suggests the same points."""
    import egobox

    design = draw(SQUARE, 8)
    ours = advance(Egobox(SQUARE, budget=40, seed=3), corner, design, 4, n=n)[len(design) :]

    x, theirs = SQUARE.to_unit(design), []
    for number in range(1, 5):
        values = corner(SQUARE.from_unit(x))
        y = np.column_stack([values.objective, values.constraints])
        solver = egobox.Egor(
            [[0.0, 1.0]] * 2,
            cstr_specs=[egobox.CstrSpec.leq(0.0, tol=0.0)] * 2,
            qei_config=egobox.QEiConfig(batch=n),
        )
        seed = int(np.random.default_rng([3, number]).integers(2**31))
        points = np.clip(solver.suggest(x, y, seed=seed), 0.0, 1.0)
        theirs.append(SQUARE.from_unit(points))
        x = np.concatenate([x, SQUARE.to_unit(theirs[-1])])
    assert np.array_equal(ours, np.vstack(theirs))


@pytest.mark.parametrize(("factory", "rounds"), [(OptunaGP, 6), (OptunaTPE, 30)])
def test_optuna_gives_the_points_of_its_own_study(factory: Any, rounds: int) -> None:
    """A study that was given the design and optimises by itself asks the same points."""
    import optuna

    design = draw(SQUARE, 12)
    optimizer = factory(SQUARE, budget=50, seed=5)
    ours = advance(optimizer, corner, design, rounds)[len(design) :]

    seed = int(np.random.SeedSequence(5).generate_state(1)[0])
    samplers = {OptunaGP: optuna.samplers.GPSampler, OptunaTPE: optuna.samplers.TPESampler}
    theirs = []

    def objective(trial: Any) -> float:
        x = np.array([[trial.suggest_float(name, -2.0, 2.0) for name in ("x0", "x1")]])
        theirs.append(x[0])
        values = corner(x)
        for name, value in zip(("c0", "c1"), values.constraints[0], strict=True):
            trial.set_constraint(name, float(value))
        return float(values.objective[0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=samplers[factory](seed=seed))
        box = {name: optuna.distributions.FloatDistribution(-2.0, 2.0) for name in ("x0", "x1")}
        for point in design:
            values = corner(point[None])
            study.add_trial(
                optuna.create_trial(
                    params={"x0": point[0], "x1": point[1]},
                    distributions=box,
                    value=float(values.objective[0]),
                    constraints={f"c{i}": float(c) for i, c in enumerate(values.constraints[0])},
                )
            )
        study.optimize(objective, n_trials=rounds)
    assert np.array_equal(ours, np.array(theirs))


def test_isres_is_pymoo_where_nothing_is_ranked_by_chance() -> None:
    """Without constraints it takes the steps of pymoo's own loop, individual by individual."""
    from pymoo.algorithms.soo.nonconvex.isres import ISRES
    from pymoo.core.population import Population
    from pymoo.core.problem import Problem as PymooProblem
    from pymoo.core.termination import NoTermination

    space = Space([0.0] * 3, [1.0] * 3)

    def bowl(x: Array) -> Evaluation:
        return Evaluation(((x - 0.3) ** 2).sum(axis=1), np.empty((len(x), 0)))

    design = draw(space, 6)
    ours = advance(Isres(space, budget=140, seed=4), bowl, design, 5, n=14)[6:]

    algorithm = ISRES(n_offsprings=14, sampling=Population.new(X=design))
    problem = PymooProblem(n_var=3, n_obj=1, xl=0.0, xu=1.0)
    algorithm.setup(problem, termination=NoTermination(), seed=4)
    theirs = []
    for _ in range(6):
        population = algorithm.ask()
        theirs.append(population.get("X"))
        population.set("F", bowl(theirs[-1]).objective[:, None])
        population.apply(lambda individual: individual.evaluated.add("F"))
        algorithm.tell(infills=population)
    assert np.array_equal(ours, np.vstack(theirs[1:]))


def test_isres_comes_close_to_the_minimum_of_its_example() -> None:
    """The documentation of pymoo solves G01, whose minimum is -15."""
    from pymoo.problems.single import G1

    problem = G1()
    lower, upper = problem.bounds()
    space = Space(lower, upper, problem.n_ieq_constr)

    def g01(x: Array) -> Evaluation:
        values = problem.evaluate(x, return_as_dictionary=True)
        return Evaluation(values["F"][:, 0], values["G"])

    points = advance(Isres(space, budget=40000, seed=1), g01, draw(space, 30), 200, n=200)
    assert -15.0 <= least(g01, points) < -14.8


def test_nomad_gives_the_points_of_its_own_loop(tmp_path: Path) -> None:
    """NOMAD by itself, in a process of its own, evaluates the same points in the same order."""
    design = draw(SQUARE, 5)
    optimizer = Nomad(SQUARE, budget=45, seed=6)
    ours = advance(optimizer, corner, design, 40)[5:]
    assert optimizer.inspect()["restarts"] == 0
    optimizer.close()

    best = corner(design).best()
    order = [best, *(row for row in range(5) if row != best)]
    seed = np.random.default_rng(np.random.SeedSequence(6).spawn(3)[2]).integers(2**16)
    code = """
import json, sys, PyNomad
task, points = json.loads(sys.argv[1]), []
def evaluate(point):
    u = [point.get_coord(i) for i in range(2)]
    points.append(u)
    x = [-2.0 + 4.0 * value for value in u]
    f = x[0] ** 2 + x[1] ** 2
    point.setBBO(f"{f!r} {1.0 - (x[0] + x[1])!r} {x[0] - 0.5!r}".encode())
    return 1
open("x0.txt", "w").writelines(f"{u[0]!r} {u[1]!r}\\n" for u in task["starts"])
PyNomad.optimize(evaluate, [], [0, 0], [1, 1], ["DIMENSION 2", "BB_OUTPUT_TYPE OBJ PB PB",
    "MAX_BB_EVAL 45", f"SEED {task['seed']}", "DISPLAY_DEGREE 0", "X0 x0.txt"])
print(json.dumps(points))
"""
    task = json.dumps({"starts": SQUARE.to_unit(design[order]).tolist(), "seed": int(seed)})
    command = [sys.executable, "-c", code, task]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    theirs = SQUARE.from_unit(np.array(json.loads(done.stdout.splitlines()[-1])))
    assert np.array_equal(ours, theirs[5:])
    other = Nomad(SQUARE, budget=45, seed=7)
    assert not np.array_equal(ours, advance(other, corner, design, 40)[5:])


def test_nomad_solves_the_example_of_its_user_guide() -> None:
    """The minimum of the first problem of the user guide is -4."""

    def basic(x: Array) -> Evaluation:
        first, second = ((x - 1.0) ** 2).sum(axis=1), ((x + 1.0) ** 2).sum(axis=1)
        return Evaluation(x[:, 4], np.column_stack([first - 25.0, 25.0 - second]))

    space = Space([-6.0] * 5, [5.0, 6.0, 7.0, 6.0, 6.0], 2)
    points = advance(Nomad(space, budget=301, seed=0), basic, np.zeros((1, 5)), 300)
    assert least(basic, points) == pytest.approx(-4.0, abs=0.05)


def test_the_seconds_of_nomads_processes_are_on_record() -> None:
    """Those of every start, the last one included, which are ended by then."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = cbo.run("toy-2d-v1", "nomad", budget=450, n_init=10, seed=0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (run.inspections[-1] or {})["restarts"] > 0
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert run.seconds_processor is not None
    assert 0.05 < 0.8 * spent < run.seconds_processor


@pytest.mark.parametrize("id_", list(LIBRARIES))
def test_a_missing_library_is_answered_with_the_pip_line(
    id_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line can be copied as it is."""
    module, distribution, extra = LIBRARIES[id_]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as caught:
        make_optimizer(id_, SQUARE, budget=10)
    assert str(caught.value) == (
        f'{id_} needs {distribution}, which is not installed: pip install "cbo-suite[{extra}]"'
    )


@pytest.mark.parametrize(("id_", "extra"), [("optuna-gp", "optuna"), ("bayesqp", "bayesqp")])
def test_so_is_a_missing_pytorch(id_: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optuna can be there without it, and then has no Gaussian processes."""
    monkeypatch.setitem(sys.modules, "torch", None)
    line = rf'{id_} needs torch, which is not installed: pip install "cbo-suite\[{extra}\]"'
    with pytest.raises(MissingExtra, match=line):
        make_optimizer(id_, SQUARE, budget=10)


@pytest.mark.parametrize(
    ("id_", "distribution"), [*((id_, LIBRARIES[id_][1]) for id_ in LIBRARIES), ("cma-es", "cma")]
)
def test_the_version_of_the_library_is_on_record(
    id_: str, distribution: str, tmp_path: Path
) -> None:
    """It stands in the journal of a process's first run, before which nothing had imported it."""
    journal = tmp_path / "run.jsonl"
    script = (
        "import sys, cbo_suite\n"
        "cbo_suite.run('toy-2d-v1', sys.argv[1], budget=10, n_init=10, journal=sys.argv[2])\n"
    )
    subprocess.run([sys.executable, "-c", script, id_, str(journal)], check=True)
    contents = read_journal(journal)
    assert contents is not None
    assert contents.header.versions[distribution] == version(distribution)


@pytest.mark.parametrize("id_", list(LIBRARIES))
def test_another_version_than_tested_is_named(id_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning has both versions, whichever optimizer is made."""
    _, distribution, _ = LIBRARIES[id_]
    monkeypatch.setattr(
        "cbo_suite.optimizers.shared.library.version",
        lambda name: "99.1" if name == distribution else version(name),
    )
    words = rf"{id_} is tested with {distribution} \d[\d.]+, installed is 99\.1"
    with pytest.warns(RuntimeWarning, match=words):
        make_optimizer(id_, SQUARE, budget=10)


def test_impossible_options_are_refused() -> None:
    """With what was got."""
    with pytest.raises(InvalidTask, match="at least 14, got 3"):
        Isres(SQUARE, budget=10, offspring=3)
    with pytest.raises(InvalidTask, match="raw_samples must be a whole number >= 10, got 5"):
        BotorchLogCEI(SQUARE, budget=10, raw_samples=5)


@pytest.mark.parametrize(
    ("id_", "asks"),
    [
        *((id_, 50) for id_ in ("egobox", "optuna-tpe", "isres", "nomad")),
        # Slow ones, which need fewer points.
        *((id_, 8) for id_ in ("optuna-gp", "bayesqp", "botorch-logcei")),
    ],
)
def test_a_function_that_fails_here_and_there_is_minimised(id_: str, asks: int) -> None:
    """A third of the box gives no values; what is found lies elsewhere."""

    def broken(x: Array) -> Evaluation:
        objective, constraints = corner(x)
        failed = x[:, 1] > 1.0
        objective[failed], constraints[failed] = np.nan, np.nan
        return Evaluation(objective, constraints)

    optimizer = make_optimizer(id_, SQUARE, budget=60, seed=1)
    points = advance(optimizer, broken, draw(SQUARE, 10), asks)
    assert least(broken, points) < 1.0


def test_egobox_takes_the_largest_seeds_beside_points_under_way() -> None:
    """Its models have seeds of 64 bits; ours may be longer."""
    optimizer = make_optimizer("egobox", SQUARE, budget=20, seed=2**70)
    design = draw(SQUARE, 10)
    optimizer.tell(design, corner(design))
    first, second = optimizer.ask(1), optimizer.ask(1)
    assert np.isfinite([first, second]).all()
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("id_", [*LIBRARIES, "furbo"])
def test_an_interrupted_run_resumes_bit_by_bit(id_: str, tmp_path: Path) -> None:
    """A journal that ends early is taken up, by the state or by asking everything again."""
    # ISRES ends its second generation, NOMAD has refined its mesh and starts again.
    budget = {"isres": 40, "nomad": 200}.get(id_, 16)
    settings: dict[str, Any] = {"budget": budget, "n_init": 10, "seed": 1}
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    expected = cbo.run("toy-2d-v1", id_, journal=whole, **settings)
    lines = whole.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:-4]))
    resumed = cbo.run("toy-2d-v1", id_, journal=part, **settings)
    assert np.array_equal(resumed.x, expected.x)
