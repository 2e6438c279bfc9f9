"use strict";
// The bootstrap of the board in the browser, draw by draw: the page brings the state in which the
// board's generator (PCG64 of NumPy) began, so that equal runs have equal intervals.
cbo.bootstrap = (() => {
  const RESAMPLES = 2000;
  const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
  const drawn = new Map();

  // 32 bits at a time, the lower half of each 64 first.
  function generator([state, increment]) {
    let now = BigInt(`0x${state}`);
    const step = BigInt(`0x${increment}`);
    let waiting = null;
    return () => {
      if (waiting !== null) {
        const upper = waiting;
        waiting = null;
        return upper;
      }
      now = BigInt.asUintN(128, now * MULTIPLIER + step);
      const folded = BigInt.asUintN(64, (now >> 64n) ^ now);
      const turn = now >> 122n;
      const out = BigInt.asUintN(64, (folded >> turn) | (folded << (64n - turn)));
      waiting = Number(out >> 32n);
      return Number(out & 0xffffffffn);
    };
  }

  // Places of n seeds in every resample, without bias (Lemire 2019).
  function indices(problem, n) {
    const key = `${n} ${problem.id}`;
    if (drawn.has(key)) return drawn.get(key);
    const next = generator(problem.states[n]);
    const least = (2 ** 32 - n) % n;
    const places = new Uint16Array(RESAMPLES * n);
    for (let i = 0; i < places.length; i += 1) {
      let product = next() * n;
      while (product % 2 ** 32 < least) product = next() * n;
      places[i] = Math.floor(product / 2 ** 32);
    }
    drawn.set(key, places);
    return places;
  }

  // Means of the resampled scores of one optimizer on one problem.
  function means(problem, scores) {
    const n = scores.length;
    const places = indices(problem, n);
    return Float64Array.from({ length: RESAMPLES }, (_, draw) => {
      let sum = 0;
      for (let i = draw * n; i < (draw + 1) * n; i += 1) sum += scores[places[i]];
      return sum / n;
    });
  }

  function quantile(sorted, share) {
    const place = share * (sorted.length - 1);
    const below = Math.floor(place);
    const above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
  }

  // The expanded percentile interval of Hesterberg (2015), as on the board: null for single runs.
  function interval(draws, sizes) {
    const count = sizes.reduce((sum, size) => sum + size, 0);
    const freedom = count - sizes.length;
    if (freedom < 1) return null;
    const distance = Math.sqrt(count / freedom) * cbo.student(freedom);
    const tail = cbo.statistics.erfc(distance / Math.SQRT2) / 2;
    const sorted = Float64Array.from(draws).sort();
    return [quantile(sorted, tail), quantile(sorted, 1 - tail)];
  }

  // The page has rounded scores: what differs by less is a tie on the board.
  function isAbove(one, other) {
    return one > other + 1e-6;
  }

  // Ranks of several in every draw, 1 for the largest; ties share the best.
  function ranks(all) {
    return all.map((own) => own.map((value, draw) => {
      let rank = 1;
      for (const other of all) if (isAbove(other[draw], value)) rank += 1;
      return rank;
    }));
  }

  return { means, interval, isAbove, ranks };
})();
