"use strict";
// Two optimizers, seed by seed: same seed, same initial design.
(() => {
  const { data, student, element, fixed, format } = cbo;
  const { wilcoxon, holm, superiority, ranks } = cbo.statistics;
  const selects = ["first", "second"].map((id) => document.getElementById(id));
  const body = document.querySelector("#pairs tbody");

  // Feasible before infeasible, feasible by value, infeasible by violation.
  function better(a, b) {
    const [p, q] = [a, b].map((run) => (run.final === null ? 1 : 0));
    if (p !== q) return p - q;
    const [u, v] = [a, b].map((run) => (p ? run.violation ?? Infinity : run.final));
    return u === v ? 0 : u - v;
  }

  function runs(row) {
    return new Map(row.seed.map((seed, i) => [
      seed, { final: row.final[i], violation: row.violation[i], anytime: row.anytime[i] },
    ]));
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
    const seeds = first.seed.filter((seed) => b.has(seed));
    if (seeds.length === 0) return null;
    const order = seeds.map((seed) => better(a.get(seed), b.get(seed)));
    const scored = seeds.filter((seed) => a.get(seed).anytime !== null);
    const outcomes = [a, b].map((side) => seeds.map((seed) => side.get(seed)));
    return {
      problem: problem.id,
      page: problem.page,
      seeds: seeds.length,
      wins: order.filter((o) => o < 0).length,
      ties: order.filter((o) => o === 0).length,
      losses: order.filter((o) => o > 0).length,
      differences: scored.map((seed) => ({
        seed, value: a.get(seed).anytime - b.get(seed).anytime,
      })),
      p: wilcoxon(rankDifferences(outcomes)),
      superiority: superiority(outcomes[0], outcomes[1], better),
    };
  }

  function mean(values) {
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  }

  // Student's interval of a mean of paired differences.
  function interval(values) {
    const centre = mean(values);
    if (values.length < 2) return [centre, centre];
    const squares = values.reduce((sum, value) => sum + (value - centre) ** 2, 0);
    const freedom = values.length - 1;
    const half = student(freedom) * Math.sqrt(squares / freedom / values.length);
    return [centre - half, centre + half];
  }

  function number(text, value = "") {
    return element("td", { class: "number", "data-value": String(value ?? "") }, text);
  }

  function tableRow(found, adjusted) {
    const values = found.differences.map((entry) => entry.value);
    const centre = mean(values);
    const [low, high] = interval(values);
    const spread = element("span", { class: "spread" }, `[${fixed(low, 1)}, ${fixed(high, 1)}]`);
    const link = element("a", { href: found.page }, found.problem);
    const score = number(centre === null ? "NA" : `${fixed(centre, 1)} `, centre);
    if (centre !== null) score.append(spread);
    return element("tr", {},
      element("th", { scope: "row", class: "stuck" }, link),
      number(String(found.seeds), found.seeds),
      number(`${found.wins} / ${found.ties} / ${found.losses}`, found.wins - found.losses),
      score,
      number(fixed(found.superiority, 2), found.superiority),
      number(format(found.p), found.p),
      number(format(adjusted), adjusted));
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
    const title = "anytime score, first minus second";
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
    const wins = found.filter((entry) => entry.wins > entry.losses).length;
    const losses = found.filter((entry) => entry.wins < entry.losses).length;
    cbo.say(same ? "Choose two different optimizers." : found.length === 0
      ? "These two have no problem and seed in common."
      : `${names[0]} is ahead of ${names[1]} on ${wins} of ${found.length} problems, behind on ` +
        `${losses}.`);
    if (found.length > 0) cbo.charts.draw("differences", () => chart(found));
    const query = new URLSearchParams(names.map((name, i) => ["ab"[i], name]));
    history.replaceState(null, "", `#${query}`);
  }

  // A link such as compare.html#a=scbo&b=cobyla picks the pair, compare.html#a=scbo one of it: the
  // other is then whoever stands first.
  function readAddress() {
    const query = new URLSearchParams(location.hash.slice(1));
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
  window.addEventListener("hashchange", () => { readAddress(); update(); });
  readAddress();
  update();
})();
