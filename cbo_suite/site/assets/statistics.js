"use strict";
// Statistics that pages compute; the tests hold them against SciPy.
cbo.statistics = (() => {
  // Ranks from 1, ties share their mean.
  function ranks(values, compare = (a, b) => a - b) {
    const order = values.map((_, i) => i).sort((i, j) => compare(values[i], values[j]));
    const result = new Array(values.length);
    for (let first = 0; first < order.length; ) {
      let last = first;
      while (
        last + 1 < order.length &&
        compare(values[order[first]], values[order[last + 1]]) === 0
      ) last += 1;
      for (let k = first; k <= last; k += 1) result[order[k]] = (first + last) / 2 + 1;
      first = last + 1;
    }
    return result;
  }

  // Complementary error function for x >= 0: a series near zero, a continued fraction beyond.
  function erfc(x) {
    if (x < 1.5) {
      let term = x;
      let sum = x;
      for (let k = 1; term > 1e-17 * sum; k += 1) {
        term *= (2 * x * x) / (2 * k + 1);
        sum += term;
      }
      return 1 - (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
    }
    let fraction = 0;
    for (let k = 120; k >= 1; k -= 1) fraction = k / 2 / (x + fraction);
    return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
  }

  // Distribution of the sum of signed ranks if every sign is a fair coin. Ranks with ties are
  // halves of whole numbers, so the sums are counted in halves.
  function signedRankTail(own, sum) {
    const steps = own.map((rank) => Math.round(2 * rank));
    let weights = [1];
    for (const step of steps) {
      const next = new Array(weights.length + step).fill(0);
      weights.forEach((weight, total) => {
        next[total] += weight / 2;
        next[total + step] += weight / 2;
      });
      weights = next;
    }
    const observed = Math.round(2 * sum);
    const below = weights.slice(0, observed + 1).reduce((a, b) => a + b, 0);
    const above = weights.slice(observed).reduce((a, b) => a + b, 0);
    return Math.min(1, 2 * Math.min(below, above));
  }

  // Two-sided Wilcoxon signed-rank test of paired differences; zeros are left out. Exact for up
  // to 50 differences, also with ties, else normal: as on the problem pages.
  function wilcoxon(differences) {
    const kept = differences.filter((d) => d !== 0);
    if (kept.length === 0) return 1;
    const own = ranks(kept.map(Math.abs));
    const positive = own.reduce((sum, rank, i) => sum + (kept[i] > 0 ? rank : 0), 0);
    if (kept.length <= 50) return signedRankTail(own, positive);
    const n = kept.length;
    const counts = new Map();
    own.forEach((rank) => counts.set(rank, (counts.get(rank) ?? 0) + 1));
    let ties = 0;
    counts.forEach((count) => { ties += count ** 3 - count; });
    const deviation = Math.sqrt((n * (n + 1) * (2 * n + 1) - ties / 2) / 24);
    const z = (positive - (n * (n + 1)) / 4) / deviation;
    return Math.min(1, erfc(Math.abs(z) / Math.SQRT2));
  }

  // Holm's step-down adjustment; null stays null and does not count.
  function holm(values) {
    const order = values.map((_, i) => i).filter((i) => values[i] !== null);
    order.sort((i, j) => values[i] - values[j]);
    const adjusted = values.map(() => null);
    let largest = 0;
    order.forEach((i, place) => {
      largest = Math.max(largest, Math.min(1, (order.length - place) * values[i]));
      adjusted[i] = largest;
    });
    return adjusted;
  }

  // How likely one of `a` is less than one of `b`; ties count one half.
  function superiority(a, b, compare = (x, y) => x - y) {
    let wins = 0;
    for (const x of a) {
      for (const y of b) {
        const order = compare(x, y);
        wins += order < 0 ? 1 : order === 0 ? 0.5 : 0;
      }
    }
    return wins / (a.length * b.length);
  }

  return { ranks, erfc, wilcoxon, holm, superiority };
})();
