"use strict";
// The charts of one problem: convergence, targets, and time to the first feasible point.
(() => {
  const { data } = cbo;
  const NONE = "No optimizer is chosen: tick some in the list above the charts.";
  const boxes = [...document.querySelectorAll('input[name="series"]')];
  const picked = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value;

  // Variants stand apart, so boxes are in another order than the rows.
  const boxOf = new Map(boxes.map((box) => [box.value, box]));
  const more = document.querySelector("details.more");

  for (const { optimizer, look } of data.rows) {
    cbo.charts.paint(boxOf.get(optimizer).parentElement.querySelector(".swatch"), look);
  }

  function shown() {
    return data.rows.filter(({ optimizer }) => boxOf.get(optimizer).checked);
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

  // The range after twice the initial design: that of its points would dwarf what follows.
  function range(values, zero) {
    const after = values.filter((value) => value.t >= 2 * data.n_init);
    const ends = after.flatMap(({ y, low = y, high = y }) => [low, high]);
    const [least, most] = [zero ? 0 : Math.min(...ends), Math.max(...ends)];
    const largest = Math.max(Math.abs(least), Math.abs(most));
    return {
      scale: least < most ? { domain: [least, most], nice: true, zero: false } : { zero },
      axis: { format: largest >= 0.1 && largest < 1e7 ? ",~f" : "~g" },
    };
  }

  function convergence() {
    const view = picked("view");
    const log = picked("scale") === "log";
    const rows = shown();
    if (rows.length === 0) return NONE;
    let values = rows.flatMap((row) => points(row, row[`${view}_mean`], row[`${view}_error`]));
    if (values.length === 0) return "No run has found a feasible point.";
    const offset = view === "paper" ? data.best : 0;
    if (log && values.every((value) => value.y <= offset)) return "All are at the best known value.";
    if (log) values = cbo.charts.toLog(values, offset);
    const paper = log ? "score above the best known value" : "score by the paper's rule";
    return cbo.charts.curves({
      values,
      names: rows.map((row) => row.optimizer),
      looks: rows.map((row) => row.look),
      title: view === "paper" ? paper : "regret",
      ...(log ? cbo.charts.decades(values) : range(values, view === "regret")),
      height: 340,
      start: data.n_init,
    });
  }

  function share(field, title) {
    const rows = shown();
    if (rows.length === 0) return NONE;
    const values = rows.flatMap((row) => points(row, row[field]));
    return cbo.charts.curves({
      values,
      names: rows.map((row) => row.optimizer),
      looks: rows.map((row) => row.look),
      title,
      ...cbo.charts.shares(values),
      height: 240,
      start: data.n_init,
    });
  }

  // The best paths of the chosen optimizers on the drawing of the problem.
  function drawTrails() {
    const map = document.querySelector(".sketch svg > g");
    for (const old of document.querySelectorAll(".sketch .trail")) old.remove();
    for (const row of shown().filter((own) => own.trail && map)) {
      const trail = document.createElementNS("http://www.w3.org/2000/svg", "path");
      trail.setAttribute("class", `trail series-${row.look[0]}`);
      trail.setAttribute("d", `M${row.trail.map((point) => point.join(",")).join(" ")}`);
      trail.setAttribute("stroke-dasharray", row.look[1].map((length) => length / 400).join(" "));
      map.append(trail);
    }
  }

  function draw() {
    drawTrails();
    cbo.charts.draw("convergence", convergence);
    cbo.charts.draw("feasible", () => share("feasible", "runs with a feasible point"));
    if (data.best !== null) {
      cbo.charts.draw("targets", () => share("targets", "targets reached"));
    }
  }

  const radios = [...document.querySelectorAll('input[name="view"], input[name="scale"]')];

  // A link has what differs from the page as it is opened.
  function remember() {
    const pairs = radios.filter((radio) => radio.checked && !radio.defaultChecked)
      .map((radio) => [radio.name, radio.value]);
    if (boxes.some((box) => box.checked !== box.defaultChecked)) {
      const own = boxes.filter((box) => box.checked);
      pairs.push(...(own.length ? own : [{ value: "" }]).map((box) => ["show", box.value]));
    }
    cbo.address.write(pairs);
  }

  function recall(query) {
    for (const radio of radios) {
      const wanted = query.get(radio.name);
      const known = radios.some((own) => own.name === radio.name && own.value === wanted && !own.disabled);
      radio.checked = known ? radio.value === wanted : radio.defaultChecked;
    }
    const wanted = query.getAll("show");
    for (const box of boxes) {
      box.checked = wanted.length ? wanted.includes(box.value) : box.defaultChecked;
      if (box.checked && more?.contains(box)) more.open = true;
    }
    draw();
  }

  for (const box of boxes) {
    box.addEventListener("change", () => {
      draw();
      remember();
    });
  }
  for (const radio of radios) {
    radio.addEventListener("change", () => {
      cbo.charts.draw("convergence", convergence);
      remember();
      cbo.say(`Convergence: ${picked("view")} view, ${picked("scale")} axis.`);
    });
  }
  const page = location.pathname.split("/").at(-1).replace(".html", "");
  for (const button of document.querySelectorAll("[data-save]")) {
    const chart = button.dataset.save;
    button.hidden = !document.getElementById(chart);
    button.addEventListener("click", () => cbo.charts.save(chart, `${page}-${chart}`));
  }
  document.querySelector("[data-saves]").hidden = data.best === null;
  cbo.address.follow(recall);
  recall(cbo.address.read() ?? new URLSearchParams());
})();
