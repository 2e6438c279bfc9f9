"use strict";
// The charts of one optimizer: its score and its overhead on every problem, and its course on each.
(() => {
  const { charts, data: { look, problems } } = cbo;
  // Where the optimizer itself is grey, the other is drawn in the colour of text.
  const OTHER = [look[0] === 8 ? 7 : 8, [1, 0]];
  const scored = problems.filter((row) => row.anytime !== null);
  if (scored.length > 0) {
    const values = scored.map((row) => ({
      name: row.problem, value: row.anytime, low: row.interval[0], high: row.interval[1],
    }));
    const title = "anytime score (0 to 100)";
    charts.draw("anytime", () => charts.intervals({ values, title, domain: [0, 100] }));
  }
  const overhead = problems.map((row) => ({ name: row.problem, value: 1000 * row.seconds }));
  const title = "milliseconds per evaluation";
  charts.draw("overhead", () => charts.intervals({ values: overhead, title }));

  function points(series, evaluations, means, errors) {
    return evaluations.flatMap((t, i) => {
      const [y, error] = [means[i], errors?.[i] ?? null];
      if (y === null) return [];
      return [{ series, t, y, ...(error === null ? {} : { low: y - error, high: y + error }) }];
    });
  }

  function course({ course: { evaluations, mean, error, rival }, n_init: start }) {
    const other = rival ? points("other", evaluations, rival.mean) : [];
    const raw = [...other, ...points("own", evaluations, mean, error)];
    if (raw.every((value) => value.y <= 0)) return "At the best known value from the first evaluation.";
    const values = charts.toLog(raw, 0);
    const { scale, axis } = charts.decades(values);
    return charts.curves({
      values,
      names: rival ? ["other", "own"] : ["own"],
      looks: rival ? [OTHER, look] : [look],
      thin: "other",
      title: null,
      scale,
      axis,
      height: 130,
      start,
      across: { title: null },
    });
  }

  problems.filter((row) => row.course).forEach((row, place) => {
    charts.draw(`course-${place}`, () => course(row));
  });
})();
