"""Statistics against SciPy, statsmodels, published tables and known coverage."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from cbo_suite.scoring.statistics import (
    bootstrap_indices,
    bootstrap_means,
    friedman,
    holm,
    paired_wilcoxon,
    percentile_interval,
    probability_of_superiority,
    superiority_interval,
    wilson_interval,
)

CASES = settings(max_examples=200, deadline=None)
SEEDS = st.integers(0, 10**6)


@pytest.fixture(scope="module", autouse=True)
def few_objects() -> Iterator[None]:
    """Spare statsmodels, which collects all garbage in every call, the objects of the modules."""
    gc.freeze()
    yield
    gc.unfreeze()


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@CASES
def test_wilson_agrees_with_statsmodels(case: tuple[int, int]) -> None:
    """To rounding, and never outside of what a probability can be."""
    successes, trials = case
    expected = proportion_confint(successes, trials, alpha=0.05, method="wilson")
    interval = wilson_interval(successes, trials)
    assert interval == pytest.approx(expected, abs=1e-12)
    assert 0.0 <= interval.low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= interval.high <= 1.0


def test_wilson_without_trials_knows_nothing() -> None:
    """No runs, no knowledge."""
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@CASES
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    """To rounding, in the order given."""
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected, abs=1e-12)


def test_holm_passes_over_what_was_not_tested() -> None:
    """NaN stays NaN and is no comparison."""
    adjusted = holm([0.01, np.nan, 0.04])
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.04])
    assert np.isnan(adjusted[1])


@given(SEEDS, st.integers(1, 50))
@CASES
def test_wilcoxon_agrees_with_scipy_without_ties(seed: int, n: int) -> None:
    """Exact up to 50 pairs."""
    difference = np.random.default_rng(seed).normal(loc=0.3, size=n)
    expected = stats.wilcoxon(difference, method="exact").pvalue
    assert paired_wilcoxon(difference, np.zeros(n)) == pytest.approx(expected, abs=1e-12)


@given(SEEDS, st.integers(51, 80))
@CASES
def test_wilcoxon_agrees_with_scipy_for_many_pairs(seed: int, n: int) -> None:
    """The normal approximation of SciPy, with its correction for ties."""
    size = np.random.default_rng(seed).integers(1, 6, size=n).astype(float)
    difference = np.where(np.random.default_rng(seed + 1).random(n) < 0.4, -size, size)
    expected = stats.wilcoxon(difference, method="asymptotic").pvalue  # type: ignore[call-overload]
    assert paired_wilcoxon(difference, np.zeros(n)) == pytest.approx(expected, abs=1e-12)


@given(SEEDS, st.integers(1, 8))
@CASES
def test_wilcoxon_with_ties_counts_all_signs(seed: int, n: int) -> None:
    """All signs of the differences, tried one by one."""
    difference = np.append(np.random.default_rng(seed).integers(-4, 5, size=n), 2)
    rest = difference[difference != 0]
    size = stats.rankdata(np.abs(rest))
    signs = np.array(np.meshgrid(*[[0, 1]] * len(rest))).reshape(len(rest), -1).T
    sums, observed = signs @ size, size[rest > 0].sum()
    tails = np.mean(sums <= observed), np.mean(sums >= observed)
    assert paired_wilcoxon(difference, np.zeros(n + 1)) == pytest.approx(
        min(1.0, 2 * min(tails)), abs=1e-12
    )


def test_wilcoxon_with_ties_agrees_with_scipy() -> None:
    """What SciPy finds by trying permutations."""
    ranks = np.array([1.0, 2.0, 2.0, 5.0, 3.5, 3.5, 1.0])
    control = np.array([2.0, 1.0, 4.0, 6.0, 6.5, 3.5, 2.0])
    expected = stats.wilcoxon(ranks, control, method=stats.PermutationMethod()).pvalue
    assert paired_wilcoxon(ranks, control) == pytest.approx(expected, abs=1e-12)


@given(SEEDS)
@CASES
def test_superiority_agrees_with_the_u_statistic(seed: int) -> None:
    """A12 is Mann and Whitney's U over the number of pairs."""
    random = np.random.default_rng(seed)
    first, second = (random.integers(0, 8, size=n).astype(float) for n in (15, 12))
    statistic = stats.mannwhitneyu(second, first).statistic
    assert probability_of_superiority(first, second) == pytest.approx(
        statistic / (15 * 12), abs=1e-12
    )


@pytest.mark.parametrize("shared", [0.0, 0.8])
@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0])
def test_the_interval_of_superiority_covers(distance: float, shared: float) -> None:
    """It holds the true probability in about 95 % of experiments, paired or not."""
    random = np.random.default_rng(0)
    truth = stats.norm.cdf(distance / math.sqrt(2))
    covered = 0
    for _ in range(1000):
        both = math.sqrt(shared) * random.standard_normal(30)
        first, second = (
            both + math.sqrt(1 - shared) * random.standard_normal(30) for _ in range(2)
        )
        low, high = superiority_interval(first - distance, second)
        covered += low <= truth <= high
    assert 930 <= covered <= 970


def test_the_interval_of_superiority_at_its_ends() -> None:
    """One that always wins may lose yet, the less likely the more pairs; one pair tells nothing."""
    low, high = np.arange(5.0), np.arange(5.0) + 10.0
    least = 0.05 ** (1 / 5)
    assert superiority_interval(low, high) == pytest.approx((least, 1.0))
    assert superiority_interval(high, low) == pytest.approx((0.0, 1 - least))
    assert superiority_interval(np.ones(5), np.ones(5)) == (0.5, 0.5)
    assert superiority_interval(low[:1], high[:1]) == (0.0, 1.0)


@given(SEEDS)
@CASES
def test_friedman_agrees_with_scipy(seed: int) -> None:
    """P-value and ranks; the control is compared with nobody."""
    scores = np.random.default_rng(seed).integers(0, 9, size=(12, 4)).astype(float)
    result = friedman(scores)
    assert result.p_value == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue, abs=1e-12)
    assert result.mean_ranks == pytest.approx(stats.rankdata(scores, axis=1).mean(axis=0))
    control = np.argmin(result.mean_ranks)
    assert np.flatnonzero(np.isnan(result.p_values)).tolist() == [control]
    z = (result.mean_ranks - result.mean_ranks[control]) / np.sqrt(4 * 5 / (6 * 12))
    others = np.arange(4) != control
    expected = multipletests(2 * stats.norm.sf(z[others]), method="holm")[1]
    assert result.p_values[others] == pytest.approx(expected, abs=1e-12)


def test_the_same_outcomes_do_not_differ() -> None:
    """Where SciPy has no answer, the answer is no difference."""
    assert paired_wilcoxon(np.ones(5), np.ones(5)) == 1.0
    assert friedman(np.ones((10, 3))).p_value == 1.0


def test_missing_scores_come_last() -> None:
    """An optimizer that was not run shares the last rank."""
    result = friedman(np.array([[1.0, np.inf, np.inf]] * 10))
    assert result.mean_ranks.tolist() == [1.0, 2.5, 2.5]


def test_the_critical_difference_of_demsar() -> None:
    """Table 5 of Demsar (2006) gives q = 2.343 for k = 3 and 2.728 for k = 5."""
    for k, q in ((3, 2.343), (5, 2.728)):
        scores = np.random.default_rng(0).normal(size=(14, k))
        expected = q * np.sqrt(k * (k + 1) / (6 * 14))
        assert friedman(scores).critical_difference == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize("law", ["normal", "uniform"])
def test_the_bootstrap_covers(n: int, law: str) -> None:
    """The 95 % interval of a mean covers in 93 to 97 % of 2000 samples."""
    random = np.random.default_rng(7)
    samples = random.normal(size=(2000, n)) if law == "normal" else random.random((2000, n)) - 0.5
    covered = 0
    for i, sample in enumerate(samples):
        interval = percentile_interval(bootstrap_means(sample, f"{law}-{i % 20}", 1000), [n])
        assert interval is not None
        covered += interval.low <= 0.0 <= interval.high
    assert 0.93 <= covered / len(samples) <= 0.97


def test_the_bootstrap_of_several_problems_covers() -> None:
    """The mean over three strata of 10 seeds each, which are resampled on their own."""
    random = np.random.default_rng(5)
    covered = 0
    for i, strata in enumerate(random.normal(size=(2000, 3, 10))):
        draws = np.mean(
            [bootstrap_means(own, f"problem-{j}-{i % 10}", 1000) for j, own in enumerate(strata)],
            axis=0,
        )
        interval = percentile_interval(draws, [10, 10, 10])
        assert interval is not None
        covered += interval.low <= 0.0 <= interval.high
    assert 0.93 <= covered / 2000 <= 0.97


def test_one_run_has_no_interval() -> None:
    """Nothing is known of the spread."""
    assert percentile_interval(np.ones(10), [1, 1]) is None
    assert percentile_interval(np.ones(10), [2]) == (1.0, 1.0)


def test_resamples_are_shared_between_optimizers_but_not_between_problems() -> None:
    """The draw depends on the problem and the number of seeds, and cannot be changed."""
    values = np.arange(30.0)
    drawn = bootstrap_means(values, "one")
    assert bootstrap_means(values + 5.0, "one") == pytest.approx(drawn + 5.0)
    assert not np.array_equal(bootstrap_means(values, "other"), drawn)
    with pytest.raises(ValueError, match="read-only"):
        bootstrap_indices(30, "one")[0, 0] = 1
