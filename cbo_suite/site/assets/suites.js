"use strict";
// The charts of the suites: the share of all targets reached, over evaluations per variable.
const swatches = [...document.querySelectorAll(".keys .swatch")];
// Ticks of a logarithmic axis that a reader can interpolate.
const TICKS = [-2, -1, 0, 1, 2, 3].flatMap((exponent) =>
  [1, 2, 5].map((factor) => Number(`${factor}e${exponent}`)));
cbo.data.forEach((suite, place) => {
  const rows = suite.rows;
  const names = rows.map((row) => row.optimizer);
  const values = rows.flatMap((row) =>
    suite.evaluations.map((t, i) => ({ series: row.optimizer, t, y: row.reached[i] })),
  );
  for (const row of rows) cbo.charts.paint(swatches.shift(), row.look);
  cbo.charts.draw(`suite-${place}`, () => cbo.charts.curves({
    values,
    names,
    looks: rows.map((row) => row.look),
    title: "targets reached",
    ...cbo.charts.shares(values),
    height: 300,
    across: {
      title: "evaluations per variable",
      scale: { type: "log", nice: false },
      axis: {
        grid: false,
        format: "~g",
        // Fewer would leave some of them without a number.
        tickCount: TICKS.length,
        values: TICKS.filter((t) => t >= suite.evaluations[0] && t <= suite.evaluations.at(-1)),
      },
    },
  }));
});
