"use strict";
// The charts of one problem: convergence, targets, and time to the first feasible point.
(() => {
  const { data } = cbo;
  const all = data.rows.map((row) => row.optimizer);
  const boxes = [...document.querySelectorAll('input[name="series"]')];
  const picked = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value;

  // The legend shows lines as they are drawn: dashes and the gaps between them.
  boxes.forEach((box, place) => {
    let end = 0;
    const stops = cbo.charts.dash(place).map((length, i) => {
      end += length;
      return `${i % 2 ? "transparent" : "currentcolor"} ${end - length}px ${end}px`;
    });
    const swatch = box.parentElement.querySelector(".swatch");
    swatch.style.backgroundImage = `repeating-linear-gradient(to right, ${stops.join(", ")})`;
  });

  function shown() {
    return data.rows.filter((_, i) => boxes[i].checked);
  }

  function points(row, values, errors) {
    return data.evaluations.flatMap((t, i) => {
      const y = values[i];
      if (y === null) return [];
      const error = errors?.[i] ?? null;
      const band = error === null ? {} : { low: y - error, high: y + error };
      return [{ series: row.optimizer, t, y, ...band }];
    });
  }

  // A log axis shows the distance to the best known value, which is never negative.
  function toLog(values, offset) {
    const moved = values.map((value) => ({
      ...value, y: value.y - offset, low: value.low - offset, high: value.high - offset,
    }));
    const positive = moved.map((value) => value.y).filter((y) => y > 0);
    const largest = Math.max(...positive, 1e-300);
    const floor = Math.max(Math.min(...positive, largest), largest * 1e-9);
    return moved.map(({ y, low, high, ...rest }) => ({
      ...rest,
      y: Math.max(y, floor),
      ...(Number.isNaN(low) ? {} : { low: Math.max(low, floor), high: Math.max(high, floor) }),
    }));
  }

  function convergence() {
    const view = picked("view");
    const log = picked("scale") === "log";
    const rows = shown();
    let values = rows.flatMap((row) => points(row, row[`${view}_mean`], row[`${view}_error`]));
    if (log) values = toLog(values, view === "paper" ? data.best : 0);
    const largest = Math.max(...values.map((value) => Math.abs(value.y)), 0);
    const paper = log ? "score above the best known value" : "score by the paper's rule";
    return cbo.charts.curves({
      values,
      names: rows.map((row) => row.optimizer),
      all,
      title: view === "paper" ? paper : "regret",
      scale: log ? { type: "log", nice: true } : { zero: view === "regret" },
      y: !log && largest >= 0.1 && largest < 1e7 ? ",~f" : "~g",
      height: 340,
      start: data.n_init,
    });
  }

  function share(field, title) {
    const rows = shown();
    return cbo.charts.curves({
      values: rows.flatMap((row) => points(row, row[field])),
      names: rows.map((row) => row.optimizer),
      all,
      title,
      scale: { domain: [0, 1] },
      y: ".0%",
      height: 240,
      start: data.n_init,
    });
  }

  function draw() {
    cbo.charts.draw("convergence", convergence);
    cbo.charts.draw("feasible", () => share("feasible", "runs with a feasible point"));
    if (data.best !== null) {
      cbo.charts.draw("targets", () => share("targets", "targets reached"));
    }
  }

  for (const box of boxes) box.addEventListener("change", draw);
  for (const input of document.querySelectorAll('input[name="view"], input[name="scale"]')) {
    input.addEventListener("change", () => {
      cbo.charts.draw("convergence", convergence);
      cbo.say(`Convergence: ${picked("view")} view, ${picked("scale")} axis.`);
    });
  }
  draw();
})();
