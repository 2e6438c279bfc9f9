"use strict";
// The ranking: filters choose problems, and all numbers are computed anew over those.
(() => {
  const { data, student, element, format, fixed } = cbo;
  const table = document.getElementById("ranking");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const original = rows.map((row) => [...row.cells].map((cell) => cell.cloneNode(true)));
  const filters = ["family", "dimension", "batch"].map((name) => document.getElementById(name));

  function chosen() {
    const [family, dimension, batch] = filters.map((filter) => filter.value);
    return data.problems.map((_, i) => i).filter((i) => {
      const problem = data.problems[i];
      return (family === "" || problem.family === family) &&
        (dimension === "" || problem.size === dimension) &&
        (batch === "" || String(problem.batch) === batch);
    });
  }

  // Mean over families of the mean over their problems; a problem that was not run counts 0.
  function anytime(entries, problems) {
    const families = new Map();
    for (const i of problems.filter((k) => data.problems[k].scored)) {
      const own = families.get(data.problems[i].family) ?? [];
      families.set(data.problems[i].family, [...own, i]);
    }
    if (families.size === 0) return { score: null, low: null, high: null };
    let score = 0;
    let variance = 0;
    let spread = 0;
    const scored = [...families.values()].flat();
    for (const own of families.values()) {
      const weight = 1 / families.size / own.length;
      for (const entry of own.map((i) => entries[i]).filter(Boolean)) {
        const part = (weight * entry.error) ** 2;
        score += weight * entry.anytime;
        variance += part;
        if (part > 0) spread += part ** 2 / (entry.runs - 1);
      }
    }
    const board = scored.length === 1 && entries[scored[0]]?.interval;
    if (board) return { score, low: board[0], high: board[1] };
    // Student's interval, with the degrees of freedom of Welch and Satterthwaite.
    const half = variance > 0 ? student(variance ** 2 / spread) * Math.sqrt(variance) : 0;
    return { score, low: Math.max(0, score - half), high: Math.min(100, score + half) };
  }

  function summary(entries, problems) {
    const run = problems.filter((i) => entries[i]);
    const sum = (of) => run.reduce((total, i) => total + of(entries[i]), 0);
    const ranks = problems.map((i) => entries[i]?.rank ?? data.problems[i].last);
    const runs = sum((entry) => entry.runs);
    return {
      ...anytime(entries, problems),
      rank: ranks.reduce((a, b) => a + b, 0) / problems.length,
      problems: run.length,
      feasible: sum((entry) => entry.feasible),
      runs,
      seconds: run.length ? sum((entry) => entry.seconds) / run.length : null,
      imputed: runs ? sum((entry) => entry.imputed * entry.runs) / runs : null,
    };
  }

  function fill(row, name, value, text, spread = "") {
    const cell = row.querySelector(`[data-column="${name}"]`);
    cell.dataset.value = value === null ? "" : String(value);
    cell.replaceChildren(text);
    if (spread) cell.append(" ", element("span", { class: "spread" }, spread));
  }

  function write(row, found, total) {
    const none = found.problems === 0;
    const unscored = none || found.score === null;
    fill(row, "anytime", unscored ? null : found.score, none ? "not run" : fixed(found.score, 1),
      unscored ? "" : `[${fixed(found.low, 1)}, ${fixed(found.high, 1)}]`);
    row.dataset.low = String(found.low);
    row.dataset.high = String(found.high);
    fill(row, "rank", none ? null : found.rank, none ? "" : fixed(found.rank, 2));
    fill(row, "problems", found.problems, `${found.problems}/${total}`);
    fill(row, "feasible", none ? null : found.feasible / found.runs,
      none ? "" : `${found.feasible}/${found.runs}`);
    fill(row, "seconds", found.seconds, none ? "" : format(found.seconds));
    fill(row, "imputed", found.imputed, none ? "" : `${fixed(100 * found.imputed, 0)} %`);
  }

  function restore() {
    rows.forEach((row, i) => {
      row.replaceChildren(...original[i].map((cell) => cell.cloneNode(true)));
      delete row.dataset.low;
      delete row.dataset.high;
    });
  }

  function update() {
    const problems = chosen();
    const all = problems.length === data.problems.length;
    if (all) restore();
    else {
      rows.forEach((row, i) => write(row, summary(data.optimizers[i].entries, problems),
        problems.length));
    }
    document.getElementById("filtered").hidden = all;
    document.getElementById("none").hidden = problems.length > 0;
    document.getElementById("some").hidden = problems.length === 0;
    cbo.say(`${problems.length} of ${data.problems.length} problems.`);
    cbo.resort(table);
  }

  function chart() {
    const values = [...table.tBodies[0].rows].flatMap((row) => {
      const i = rows.indexOf(row);
      const cell = row.querySelector('[data-column="anytime"]');
      if (cell.dataset.value === "") return [];
      const board = data.optimizers[i].interval;
      const [low, high] = row.dataset.low ? [row.dataset.low, row.dataset.high].map(Number) : board;
      return [{ name: data.optimizers[i].id, value: Number(cell.dataset.value), low, high }];
    });
    if (values.length === 0) return "These problems have no best known value, so there is no score.";
    return cbo.charts.intervals({ values, title: "anytime score (0 to 100)", domain: [0, 100] });
  }

  for (const filter of filters) filter.addEventListener("change", update);
  document.getElementById("reset").addEventListener("click", () => {
    for (const filter of filters) filter.value = "";
    update();
    filters[0].focus();
  });
  table.addEventListener("sorted", () => cbo.charts.draw("anytime-chart", chart));
  cbo.charts.draw("anytime-chart", chart);

  if (data.comparison) {
    const { names, ranks, difference } = data.comparison;
    const values = names.map((name, i) => ({
      name, value: ranks[i], low: ranks[i] - difference / 2, high: ranks[i] + difference / 2,
    }));
    const [title, domain] = ["mean rank, 1 is best", [1, names.length]];
    cbo.charts.draw("difference-chart", () => cbo.charts.intervals({ values, title, domain }));
  }
})();
