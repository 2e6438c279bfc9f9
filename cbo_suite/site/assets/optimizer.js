"use strict";
// The charts of one optimizer: its score and its overhead on every problem.
(() => {
  const { data } = cbo;
  const scored = data.filter((row) => row.anytime !== null);
  if (scored.length > 0) {
    const values = scored.map((row) => ({
      name: row.problem, value: row.anytime, low: row.interval[0], high: row.interval[1],
    }));
    const title = "anytime score (0 to 100)";
    cbo.charts.draw("anytime", () => cbo.charts.intervals({ values, title, domain: [0, 100] }));
  }
  const overhead = data.map((row) => ({ name: row.problem, value: 1000 * row.seconds }));
  const title = "milliseconds per evaluation";
  cbo.charts.draw("overhead", () => cbo.charts.intervals({ values: overhead, title }));
})();
