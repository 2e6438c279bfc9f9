"use strict";
// The rankings: filters choose problems, and all numbers are computed anew over those.
(() => {
  const { data, student, element, format, fixed } = cbo;
  const filters = ["family", "dimension", "batch"].map((name) => document.getElementById(name));
  const variants = document.getElementById("variants");
  // One for each table of a track: those who are ranked, and those who are partial.
  const standings = data.tracks.flatMap((track) => ["ranked", "partial"].flatMap((kind) => {
    const table = document.getElementById(`${track.id}-${kind}`);
    if (!table) return [];
    const rows = [...table.tBodies[0].rows];
    const original = rows.map((row) => [...row.cells].map((cell) => cell.cloneNode(true)));
    return [{ track, kind, table, rows, original, optimizers: track[kind] }];
  }));

  function chosen(track) {
    const [family, dimension, batch] = filters.map((filter) => filter.value);
    return track.problems.map((_, i) => i).filter((i) => {
      const problem = track.problems[i];
      return (family === "" || problem.family === family) &&
        (dimension === "" || problem.size === dimension) &&
        (batch === "" || String(problem.batch) === batch);
    });
  }

  // Mean over families of the mean over their problems, of those that were run.
  function anytime(entries, track, run) {
    const families = new Map();
    for (const i of run) {
      const own = families.get(track.problems[i].group) ?? [];
      families.set(track.problems[i].group, [...own, i]);
    }
    if (run.length === 0) return { score: null, low: null, high: null };
    let score = 0;
    let variance = 0;
    let spread = 0;
    for (const own of families.values()) {
      const weight = 1 / families.size / own.length;
      for (const entry of own.map((i) => entries[i])) {
        const part = (weight * entry.error) ** 2;
        score += weight * entry.anytime;
        variance += part;
        if (part > 0) spread += part ** 2 / (entry.runs - 1);
      }
    }
    const board = run.length === 1 && entries[run[0]].interval;
    if (board) return { score, low: board[0], high: board[1] };
    // Student's interval, with the degrees of freedom of Welch and Satterthwaite.
    const half = variance > 0 ? student(variance ** 2 / spread) * Math.sqrt(variance) : 0;
    return { score, low: Math.max(0, score - half), high: Math.min(100, score + half) };
  }

  function summary(entries, track, problems) {
    const run = problems.filter((i) => entries[i]);
    const sum = (of) => run.reduce((total, i) => total + of(entries[i]), 0);
    const runs = sum((entry) => entry.runs);
    const compared = run.length > 0 && run.every((i) => entries[i].rank !== null);
    return {
      ...anytime(entries, track, run),
      rank: compared ? sum((entry) => entry.rank) / run.length : null,
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
    fill(row, "anytime", found.score, none ? "not run" : fixed(found.score, 1),
      none ? "" : `[${fixed(found.low, 1)}, ${fixed(found.high, 1)}]`);
    row.dataset.low = String(found.low);
    row.dataset.high = String(found.high);
    fill(row, "feasible", none ? null : found.feasible / found.runs,
      none ? "" : `${found.feasible}/${found.runs}`);
    fill(row, "seconds", found.seconds, none ? "" : format(found.seconds));
    fill(row, "imputed", found.imputed, none ? "" : `${fixed(100 * found.imputed, 0)} %`);
    if (row.querySelector("[data-column='problems']")) {
      // Equally many problems stand in the order of the score.
      fill(row, "problems", found.problems + found.score / 1000, `${found.problems}/${total}`);
    } else {
      fill(row, "rank", found.rank, found.rank === null ? "" : fixed(found.rank, 2));
    }
  }

  // Only methods have a rank; ties share it.
  function writeRanks(rows, found) {
    const scores = found.filter((_, i) => !isVariant(rows[i])).map(({ score }) => score);
    rows.forEach((row, i) => {
      const rank = isVariant(row) ? null : 1 + scores.filter((s) => s > found[i].score).length;
      fill(row, "place", rank, rank === null ? "" : String(rank));
    });
  }

  function isVariant(row) {
    return row.classList.contains("variant");
  }

  function restore({ rows, original }) {
    rows.forEach((row, i) => {
      row.replaceChildren(...original[i].map((cell) => cell.cloneNode(true)));
      delete row.dataset.low;
      delete row.dataset.high;
    });
  }

  function compute({ track, kind, rows, optimizers }, problems) {
    const found = optimizers.map(({ entries }) => summary(entries, track, problems));
    rows.forEach((row, i) => write(row, found[i], problems.length));
    if (kind === "ranked") writeRanks(rows, found);
  }

  function update() {
    const all = filters.every((filter) => filter.value === "");
    const [left, total] = [new Set(), new Set()];
    for (const track of data.tracks) {
      const problems = chosen(track);
      document.getElementById(track.id).hidden = problems.length === 0 && !all;
      for (const i of problems) left.add(track.problems[i].id);
      for (const problem of track.problems) total.add(problem.id);
      for (const standing of standings.filter((own) => own.track === track)) {
        if (all) restore(standing);
        else compute(standing, problems);
        if (all || problems.length > 0) cbo.resort(standing.table);
      }
    }
    const overall = document.getElementById("overall");
    if (overall) overall.hidden = !all;
    document.getElementById("filtered").hidden = all;
    document.getElementById("none").hidden = all || left.size > 0;
    cbo.say(`${left.size} of ${total.size} problems.`);
  }

  function chart({ table, rows, optimizers }) {
    const values = [...table.tBodies[0].rows].filter((row) => !row.hidden).flatMap((row) => {
      const i = rows.indexOf(row);
      const cell = row.querySelector('[data-column="anytime"]');
      if (cell.dataset.value === "") return [];
      const board = optimizers[i].interval;
      const [low, high] = row.dataset.low ? [row.dataset.low, row.dataset.high].map(Number) : board;
      return [{ name: optimizers[i].id, value: Number(cell.dataset.value), low, high }];
    });
    if (values.length === 0) return "There is nothing to draw: show the variants, or all problems.";
    return cbo.charts.intervals({ values, title: "anytime score (0 to 100)", domain: [0, 100] });
  }

  function draw(standing) {
    cbo.charts.draw(`${standing.table.id}-chart`, () => chart(standing));
  }

  // Without this script all of them are shown.
  function showVariants() {
    for (const row of document.querySelectorAll("tr.variant")) row.hidden = !variants.checked;
  }

  for (const filter of filters) filter.addEventListener("change", update);
  document.getElementById("reset").addEventListener("click", () => {
    for (const filter of filters) filter.value = "";
    update();
    filters[0].focus();
  });
  if (variants) {
    showVariants();
    variants.addEventListener("change", () => {
      showVariants();
      standings.forEach(draw);
      cbo.say(variants.checked ? "Variants are shown." : "Variants are hidden.");
    });
  }
  for (const standing of standings) {
    standing.table.addEventListener("sorted", () => draw(standing));
    draw(standing);
  }

  if (data.comparison) {
    const { names, ranks, difference } = data.comparison;
    const values = names.map((name, i) => ({
      name, value: ranks[i], low: ranks[i] - difference / 2, high: ranks[i] + difference / 2,
    }));
    const [title, domain] = ["mean rank, 1 is best", [1, names.length]];
    cbo.charts.draw("difference-chart", () => cbo.charts.intervals({ values, title, domain }));
  }
})();
