"use strict";
// The rankings: filters choose problems and optimizers; over chosen problems all numbers are
// computed anew, as the board computes them.
(() => {
  const { data, bootstrap, address, element, format, fixed } = cbo;
  const get = (id) => document.getElementById(id);
  const filters = ["family", "dimension", "batch"].map(get);
  const kind = get("kind");
  const [verified, variants] = ["verified", "variants"].map(get);
  const folds = [...document.querySelectorAll("button.fold")];
  const boxes = [...document.querySelectorAll('input[name="series"]')];
  // Methods whose variants are unfolded one by one.
  const unfolded = new Set();
  // One for each table of a track: those who are ranked, and those who are partial.
  const standings = data.tracks.flatMap((track) => ["ranked", "partial"].flatMap((group) => {
    const table = get(`${track.id}-${group}`);
    if (!table) return [];
    const rows = [...table.tBodies[0].rows];
    const original = rows.map((row) => [...row.cells].map((cell) => cell.cloneNode(true)));
    return [{ track, group, table, rows, original, optimizers: track[group] }];
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

  // Families count alike, and so do the problems of a family.
  function weights(track, run) {
    const members = new Map();
    for (const i of run) {
      const { group } = track.problems[i];
      members.set(group, (members.get(group) ?? 0) + 1);
    }
    return run.map((i) => 1 / members.size / members.get(track.problems[i].group));
  }

  function mean(values) {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  // Score over the problems that were run, with draws of its bootstrap.
  function anytime(entries, track, run) {
    if (run.length === 0) return { score: null, interval: null, draws: null, sizes: [] };
    const shares = weights(track, run);
    const sizes = run.map((i) => entries[i].scores.length);
    const score = run.reduce((sum, i, k) => sum + shares[k] * mean(entries[i].scores), 0);
    const parts = run.map((i) => bootstrap.means(track.problems[i], entries[i].scores));
    const draws = parts[0].map((_, d) => parts.reduce((sum, part, k) => sum + shares[k] * part[d], 0));
    return { score, draws, sizes, interval: bootstrap.interval(draws, sizes) };
  }

  function summary(entries, track, problems) {
    const run = problems.filter((i) => entries[i]);
    const sum = (of) => run.reduce((total, i) => total + of(entries[i]), 0);
    const runs = sum((entry) => entry.scores.length);
    const compared = run.length > 0 && run.every((i) => entries[i].rank !== null);
    return {
      ...anytime(entries, track, run),
      rank: compared ? sum((entry) => entry.rank) / run.length : null,
      problems: run.length,
      feasible: sum((entry) => entry.feasible),
      runs,
      seconds: run.length ? sum((entry) => entry.seconds) / run.length : null,
      imputed: runs ? sum((entry) => entry.imputed * entry.scores.length) / runs : null,
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
    const ends = found.interval;
    fill(row, "anytime", found.score, none ? "not run" : fixed(found.score, 1),
      ends ? `[${fixed(ends[0], 1)}, ${fixed(ends[1], 1)}]` : "");
    const whisker = row.querySelector(".whisker");
    whisker.classList.toggle("empty", none);
    const [low, high] = ends ?? [found.score, found.score];
    whisker.querySelector("line").setAttribute("x1", String(low ?? 0));
    whisker.querySelector("line").setAttribute("x2", String(high ?? 0));
    whisker.querySelector("circle").setAttribute("cx", String(found.score ?? 0));
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
    const methods = found.map((_, i) => i).filter((i) => !isVariant(rows[i]) && found[i].draws);
    const drawn = bootstrap.ranks(methods.map((i) => found[i].draws));
    for (const row of rows) fill(row, "place", null, "");
    methods.forEach((i, place) => {
      const rank = 1 + methods.filter((j) => bootstrap.isAbove(found[j].score, found[i].score)).length;
      const ends = bootstrap.interval(drawn[place], found[i].sizes);
      fill(rows[i], "place", rank, String(rank),
        ends ? `[${Math.floor(ends[0])}, ${Math.ceil(ends[1])}]` : "");
    });
  }

  function isVariant(row) {
    return row.classList.contains("variant");
  }

  function restore({ rows, original }) {
    rows.forEach((row, i) => {
      // The name keeps its button; all other cells are the board's again.
      [...row.cells].forEach((cell, column) => {
        if (cell.tagName === "TD") cell.replaceWith(original[i][column].cloneNode(true));
      });
    });
  }

  function compute({ track, group, rows, optimizers }, problems) {
    const found = optimizers.map(({ entries }) => summary(entries, track, problems));
    rows.forEach((row, i) => write(row, found[i], problems.length));
    if (group === "ranked") writeRanks(rows, found);
  }

  // Whether the filters of optimizers let a row pass.
  function passes(row) {
    return (!kind || kind.value === "" || row.dataset.kind === kind.value) &&
      (!verified?.checked || row.dataset.verified !== undefined);
  }

  function isOpen(method) {
    return Boolean(variants?.checked) || unfolded.has(method);
  }

  // Without this script all variants are shown.
  function showRows() {
    for (const row of document.querySelectorAll(".ranking tbody tr")) {
      row.hidden = !passes(row) || (isVariant(row) && !isOpen(row.dataset.method));
    }
    for (const button of folds) {
      button.setAttribute("aria-expanded", String(isOpen(button.dataset.method)));
    }
    // A table of nothing but folded variants has nothing to show.
    for (const { table, rows } of standings) {
      table.parentElement.hidden = rows.every((row) => row.hidden && isVariant(row));
    }
  }

  let before = "";
  function update() {
    const all = filters.every((filter) => filter.value === "");
    const now = filters.map((filter) => filter.value).join("\n");
    const [left, total] = [new Set(), new Set()];
    for (const track of data.tracks) {
      const problems = chosen(track);
      get(track.id).hidden = problems.length === 0 && !all;
      for (const i of problems) left.add(track.problems[i].id);
      for (const problem of track.problems) total.add(problem.id);
      for (const standing of standings.filter((own) => own.track === track && now !== before)) {
        if (all) restore(standing);
        else if (problems.length > 0) compute(standing, problems);
        if (all || problems.length > 0) cbo.resort(standing.table);
      }
    }
    before = now;
    showRows();
    if (get("overall")) get("overall").hidden = !all;
    get("filtered").hidden = all;
    get("none").hidden = all || left.size > 0;
    cbo.say(`${left.size} of ${total.size} problems.`);
    data.tracks.forEach(draw);
    remember();
  }

  function chart(track) {
    const standing = standings.find((own) => own.track === track && own.group === track.draws);
    const problems = chosen(track);
    const lines = standing.optimizers.flatMap((optimizer, i) => {
      const box = boxes.find((own) => own.dataset.group === track.id && own.value === optimizer.id);
      const run = problems.filter((k) => optimizer.entries[k]);
      if (!box?.checked || !passes(standing.rows[i]) || run.length === 0) return [];
      const shares = weights(track, run);
      const values = data.shares.map((t, place) => ({
        series: optimizer.id, t,
        y: run.reduce((sum, k, part) => sum + shares[part] * optimizer.entries[k].curve[place], 0),
      }));
      return [{ name: optimizer.id, look: optimizer.look, values }];
    });
    if (lines.length === 0) return "There is nothing to draw: choose optimizers, or fewer filters.";
    const values = lines.flatMap((line) => line.values);
    return cbo.charts.curves({
      values,
      names: lines.map((line) => line.name),
      looks: lines.map((line) => line.look),
      title: "targets reached",
      ...cbo.charts.shares(values),
      height: 300,
      interpolate: "linear",
      across: {
        title: "share of the budget after the initial design",
        axis: { grid: false, format: ".0%" },
      },
    });
  }

  function draw(track) {
    if (get(`${track.id}-chart`)) cbo.charts.draw(`${track.id}-chart`, () => chart(track));
  }

  function shown(group) {
    return boxes.filter((box) => box.dataset.group === group);
  }

  // A link has what differs from the page as it is opened.
  function remember() {
    const pairs = [...filters, kind].filter((own) => own && own.value !== "")
      .map((own) => [own.id, own.value]);
    if (verified?.checked) pairs.push(["verified", "yes"]);
    if (variants?.checked) pairs.push(["variants", "all"]);
    else for (const method of unfolded) pairs.push(["variants", method]);
    for (const { id } of data.tracks) {
      if (shown(id).some((box) => box.checked !== box.defaultChecked)) {
        const own = shown(id).filter((box) => box.checked);
        pairs.push(...(own.length ? own : [{ value: "" }]).map((box) => [id, box.value]));
      }
    }
    address.write(pairs);
  }

  function recall(query) {
    for (const own of [...filters, kind].filter(Boolean)) {
      const wanted = query.get(own.id) ?? "";
      own.value = [...own.options].some((option) => option.value === wanted) ? wanted : "";
    }
    if (verified) verified.checked = query.get("verified") === "yes";
    if (variants) variants.checked = query.get("variants") === "all";
    unfolded.clear();
    const methods = new Set(folds.map((button) => button.dataset.method));
    for (const name of query.getAll("variants")) if (methods.has(name)) unfolded.add(name);
    for (const { id } of data.tracks) {
      const wanted = query.getAll(id);
      for (const box of shown(id)) {
        box.checked = wanted.length ? wanted.includes(box.value) : box.defaultChecked;
      }
    }
    update();
  }

  for (const control of [...filters, kind, verified, ...boxes]) control?.addEventListener("change", update);
  variants?.addEventListener("change", () => {
    unfolded.clear();
    update();
    cbo.say(variants.checked ? "Variants are shown." : "Variants are hidden.");
  });
  for (const line of document.querySelectorAll(".folds")) line.hidden = false;
  for (const button of folds) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const name = button.dataset.method;
      const open = !isOpen(name);
      // One that is folded while all are open leaves the others open.
      if (variants?.checked) for (const other of folds) unfolded.add(other.dataset.method);
      if (variants) variants.checked = false;
      if (open) unfolded.add(name);
      else unfolded.delete(name);
      update();
      cbo.say(`Variants of ${name} are ${open ? "shown" : "hidden"}.`);
    });
  }
  get("reset").addEventListener("click", () => {
    recall(new URLSearchParams());
    filters[0].focus();
  });
  for (const box of boxes) {
    const track = data.tracks.find((own) => own.id === box.dataset.group);
    const { look } = track[track.draws].find((own) => own.id === box.value);
    cbo.charts.paint(box.parentElement.querySelector(".swatch"), look);
  }
  address.follow(recall);
  recall(address.read() ?? new URLSearchParams());

  if (data.comparison) {
    const { names, ranks, difference } = data.comparison;
    const values = names.map((name, i) => ({
      name, value: ranks[i], low: ranks[i] - difference / 2, high: ranks[i] + difference / 2,
    }));
    const [title, domain] = ["mean rank, 1 is best", [1, names.length]];
    cbo.charts.draw("difference-chart", () => cbo.charts.intervals({ values, title, domain }));
  }
})();
