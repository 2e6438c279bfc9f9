"use strict";
// Two optimizers, seed by seed: same seed, same initial design.
(() => {
  const { data, student, address, element, fixed, format } = cbo;
  const { wilcoxon, holm, superiority, ranks } = cbo.statistics;
  const selects = ["first", "second"].map((id) => document.getElementById(id));
  const body = document.querySelector("#pairs tbody");

  // The page has the place of each run among all of its problem, equal ones alike.
  function better(a, b) {
    return a.place - b.place;
  }

  function runs(row) {
    const seeds = row.seed ?? row.place.map((_, i) => i);
    return new Map(seeds.map((seed, i) => [seed, { place: row.place[i], anytime: row.anytime[i] }]));
  }

  // Ranks among the runs of the two alone, as the tests of the problem pages use.
  function rankDifferences([first, second]) {
    const own = ranks([...first, ...second], better);
    return first.map((_, i) => own[i] - own[first.length + i]);
  }

  function compareOn(problem, names) {
    const [first, second] = names.map((name) => problem.rows.find((row) => row.optimizer === name));
    if (!first || !second) return null;
    const [a, b] = [runs(first), runs(second)];
    const seeds = [...a.keys()].filter((seed) => b.has(seed));
    if (seeds.length === 0) return null;
    const order = seeds.map((seed) => better(a.get(seed), b.get(seed)));
    const scored = seeds.filter((seed) => a.get(seed).anytime !== null);
    const outcomes = [a, b].map((side) => seeds.map((seed) => side.get(seed)));
    const differences = scored.map((seed) => ({
      seed, value: a.get(seed).anytime - b.get(seed).anytime,
    }));
    return {
      problem: problem.id,
      page: problem.page,
      seeds: seeds.length,
      wins: order.filter((o) => o < 0).length,
      ties: order.filter((o) => o === 0).length,
      losses: order.filter((o) => o > 0).length,
      scores: [a, b].map((side) => mean(scored.map((seed) => side.get(seed).anytime))),
      differences,
      byScore: Math.sign(mean(differences.map(({ value }) => value)) ?? 0),
      byWins: Math.sign(order.filter((o) => o < 0).length - order.filter((o) => o > 0).length),
      p: wilcoxon(rankDifferences(outcomes)),
      superiority: superiority(outcomes[0], outcomes[1], better),
    };
  }

  function mean(values) {
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  }

  // Mean and variance of the mean of paired differences, with its degrees of freedom.
  function estimate(values) {
    const centre = mean(values);
    const freedom = values.length - 1;
    const squares = values.reduce((sum, value) => sum + (value - centre) ** 2, 0);
    return { centre, freedom, variance: freedom > 0 ? squares / freedom / values.length : 0 };
  }

  // Student's interval of a weighted sum of such means; several have Welch's degrees of freedom.
  function interval(parts) {
    const centre = parts.reduce((sum, [weight, part]) => sum + weight * part.centre, 0);
    const shares = parts.map(([weight, part]) => [weight ** 2 * part.variance, part.freedom])
      .filter(([variance]) => variance > 0);
    const variance = shares.reduce((sum, [own]) => sum + own, 0);
    if (variance === 0) return [centre, centre, centre];
    const freedom = variance ** 2 / shares.reduce((sum, [own, free]) => sum + own ** 2 / free, 0);
    const half = student(freedom) * Math.sqrt(variance);
    return [centre, centre - half, centre + half];
  }

  function number(text, value = "") {
    return element("td", { class: "number", "data-value": String(value ?? "") }, text);
  }

  function difference(parts) {
    const [centre, low, high] = interval(parts);
    const cell = number(`${fixed(centre, 1)} `, centre);
    cell.append(element("span", { class: "spread" }, `[${fixed(low, 1)}, ${fixed(high, 1)}]`));
    return cell;
  }

  function tableRow(found, adjusted) {
    const values = found.differences.map((entry) => entry.value);
    const name = element("th", { scope: "row", class: "stuck", "data-value": found.problem },
      element("a", { href: found.page }, found.problem));
    if (found.byScore * found.byWins < 0) {
      name.append(" ", element("span", { class: "badge provisional" }, "score ≠ wins"));
    }
    const score = values.length ? difference([[1, estimate(values)]]) : number("NA");
    return element("tr", {},
      name,
      number(String(found.seeds), found.seeds),
      number(`${found.wins} / ${found.ties} / ${found.losses}`, found.wins - found.losses),
      score,
      number(fixed(found.superiority, 2), found.superiority),
      number(format(found.p), found.p),
      number(format(adjusted), adjusted));
  }

  function counts(found, field) {
    const signs = found.map((entry) => entry[field]);
    return [1, 0, -1].map((sign) => signs.filter((own) => own === sign).length);
  }

  // Each family of a track counts once, as in its ranking; only problems that both were run on.
  function trackRow(track, found, names) {
    const families = track.families
      .map((ids) => found.filter((entry) => ids.includes(entry.problem) && entry.differences.length))
      .filter((own) => own.length > 0);
    const own = families.flat();
    if (own.length === 0) return [];
    const weights = families.flatMap((members) => members.map(() => 1 / families.length / members.length));
    const scores = [0, 1].map((side) =>
      own.reduce((sum, entry, i) => sum + weights[i] * entry.scores[side], 0));
    const parts = own.map((entry, i) => [weights[i], estimate(entry.differences.map((d) => d.value))]);
    const [, low, high] = interval(parts);
    const ahead = scores[0] > scores[1] ? names[0] : names[1];
    return [element("tr", {},
      element("th", { scope: "row", class: "stuck" }, track.id),
      number(`${own.length} of ${track.families.flat().length}`),
      ...scores.map((score) => number(fixed(score, 1), score)),
      difference(parts),
      element("td", {}, low <= 0 && high >= 0 ? "nobody for sure" : ahead),
      ...["byScore", "byWins"].map((field) => number(counts(own, field).join(" / "))))];
  }

  // Who is ahead by which measure, and why the two need not agree.
  function explain(found, names) {
    const split = found.filter((entry) => entry.byScore * entry.byWins < 0);
    const rule = "Wins ask who ended lower on a seed, by however little. The anytime score asks " +
      "how soon and how closely a run came near the best known value: who is fast and then " +
      "overtaken in the last digits has the score and not the wins.";
    if (split.length === 0) return `Score and wins name the same optimizer on every problem. ${rule}`;
    const said = split.map(({ problem, byScore }) => {
      const [score, wins] = byScore > 0 ? names : [names[1], names[0]];
      return `${problem} (${score} by score, ${wins} by wins)`;
    });
    return `Score and wins disagree on ${said.join(", ")}. ${rule}`;
  }

  function chart(found) {
    const names = found.map((entry) => entry.problem);
    const values = found.flatMap((entry) => entry.differences.map(
      ({ seed, value }) => ({ problem: entry.problem, seed, value })));
    const means = found.filter((entry) => entry.differences.length > 0).map((entry) => ({
      problem: entry.problem, value: mean(entry.differences.map((d) => d.value)),
    }));
    if (values.length === 0) return "These problems have no best known value, so there is no score.";
    if (values.every(({ value }) => value === 0)) {
      return "There is no difference: the two have the same score on every problem and seed.";
    }
    const y = cbo.charts.rows("problem", names);
    const title = `anytime score, ${selects.map((select) => select.value).join(" minus ")}`;
    const x = { field: "value", type: "quantitative", title };
    return {
      height: 34 * names.length,
      layer: [
        {
          data: { values: [{ value: 0 }] },
          mark: { type: "rule", color: cbo.charts.colour("soft") },
          encoding: { x: { field: "value", type: "quantitative" } },
        },
        {
          data: { values },
          mark: { type: "point", filled: true, size: 34, opacity: 0.45 },
          encoding: { y, x, tooltip: [{ field: "seed" }, { field: "value", format: ".3~g" }] },
        },
        {
          data: { values: means },
          mark: {
            type: "point", filled: true, shape: "diamond", size: 150, opacity: 1,
            color: cbo.charts.colour("series-2"),
          },
          encoding: { y, x },
        },
      ],
    };
  }

  function seedTable(found) {
    const rows = found.flatMap((entry) => entry.differences.map(({ seed, value }) =>
      element("tr", {}, element("th", { scope: "row" }, entry.problem),
        number(String(seed)), number(fixed(value, 2)))));
    document.querySelector("#seeds tbody").replaceChildren(...rows);
  }

  function update() {
    const names = selects.map((select) => select.value);
    const same = names[0] === names[1];
    const found = same ? [] : data.problems.map((problem) => compareOn(problem, names)).filter(Boolean);
    const adjusted = holm(found.map((entry) => entry.p));
    body.replaceChildren(...found.map((entry, i) => tableRow(entry, adjusted[i])));
    cbo.resort(document.getElementById("pairs"));
    seedTable(found);
    document.getElementById("result").hidden = found.length === 0;
    document.querySelector("#summary tbody").replaceChildren(
      ...data.tracks.flatMap((track) => trackRow(track, found, names)));
    document.getElementById("why").textContent = explain(found, names);
    for (const side of document.querySelectorAll("[data-side]")) {
      side.textContent = names[Number(side.dataset.side)];
    }
    const [ahead, , behind] = counts(found, "byScore");
    const [wins, , losses] = counts(found, "byWins");
    cbo.say(same ? "Choose two different optimizers." : found.length === 0
      ? "These two have no problem and seed in common."
      : `By anytime score ${names[0]} is ahead of ${names[1]} on ${ahead} of ${found.length} ` +
        `problems, behind on ${behind}; by wins, final outcomes seed by seed, ahead on ${wins}, ` +
        `behind on ${losses}.`);
    if (found.length > 0) cbo.charts.draw("differences", () => chart(found));
    address.write(names.map((name, i) => ["ab"[i], name]));
  }

  // A link such as compare.html#a=scbo&b=cobyla picks the pair, compare.html#a=scbo one of it: the
  // other is then whoever stands first.
  function readAddress(query) {
    const free = selects.filter((select, i) => {
      const wanted = query.get("ab"[i]);
      const known = [...select.options].some((option) => option.value === wanted);
      if (known) select.value = wanted;
      return !known;
    });
    if (free.length === 1 && selects[0].value === selects[1].value) {
      const other = [...free[0].options].find((option) => option.value !== free[0].value);
      if (other) free[0].value = other.value;
    }
  }

  for (const select of selects) select.addEventListener("change", update);
  document.getElementById("swap").addEventListener("click", () => {
    [selects[0].value, selects[1].value] = [selects[1].value, selects[0].value];
    update();
  });
  address.follow((query) => { readAddress(query); update(); });
  readAddress(address.read() ?? new URLSearchParams());
  update();
})();
