"use strict";
// Charts: Vega-Lite descriptions drawn as SVG in the colours of the page. Expressions are
// interpreted, not compiled, because the pages' security policy forbids making code from text.
cbo.charts = (() => {
  const NUM_COLOURS = 8;
  const NARROW = matchMedia("(max-width: 48rem)");
  // On a phone long names break after a hyphen, so that the values have room.
  const LONG = "length(datum.label) > 21";
  const BREAK = `lastindexof(slice(datum.label, 0, 21), "-") + 1`;
  const BROKEN = {
    labelExpr: `${LONG} ? [slice(datum.label, 0, ${BREAK}), slice(datum.label, ${BREAK})] : datum.label`,
    labelOffset: { condition: { test: LONG, value: -6 }, value: 0 },
    labelFontSize: 11, labelLineHeight: 12, labelLimit: 135, labelOverlap: false,
  };
  const drawn = new Map();

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function config() {
    const [ink, soft, line, grid] = ["ink", "soft", "line", "grid"].map(colour);
    const font = getComputedStyle(document.body).fontFamily;
    return {
      // Each chart is one picture with a label, and its numbers stand in a table.
      aria: false,
      background: "transparent",
      font,
      padding: { left: 2, right: 12, top: 6, bottom: 2 },
      view: { stroke: null },
      axis: {
        labelColor: soft, titleColor: soft, domainColor: line, tickColor: line, gridColor: grid,
        labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, titlePadding: 8, labelLimit: 190,
        labelOverlap: "greedy", labelSeparation: 6,
      },
      axisX: { tickCount: 6 },
      axisY: { tickCount: 6 },
      title: { color: ink },
      mark: { color: colour("series-1") },
    };
  }

  // Series have the looks that the page gives them, [number of the colour, lengths of the dash],
  // the same on all pages; without any, colours by their place.
  function styles(names, looks) {
    const own = looks ?? names.map((_, i) => [(i % NUM_COLOURS) + 1, [1, 0]]);
    const scale = (range) => ({ domain: names, range });
    const shared = { field: "series", type: "nominal", legend: null };
    return {
      color: { ...shared, scale: scale(own.map(([number]) => colour(`series-${number}`))) },
      strokeDash: { ...shared, scale: scale(own.map(([, dash]) => dash)) },
    };
  }

  // A legend shows lines as they are drawn: dashes and the gaps between them.
  function paint(swatch, [, dash]) {
    let end = 0;
    const stops = dash.map((length, i) => {
      end += length;
      return `${i % 2 ? "transparent" : "currentcolor"} ${end - length}px ${end}px`;
    });
    swatch.style.backgroundImage = `repeating-linear-gradient(to right, ${stops.join(", ")})`;
  }

  async function render(id) {
    const { make, view } = drawn.get(id);
    const container = document.getElementById(id);
    if (view) view.finalize();
    const made = make();
    const empty = typeof made === "string";
    container.replaceChildren(...(empty ? [cbo.element("p", { class: "note" }, made)] : []));
    if (empty) {
      // What a picture contains is not read out, and this is no picture.
      container.setAttribute("role", "note");
      drawn.set(id, { make });
      count(container);
      return;
    }
    const spec = { width: "container", autosize: { type: "fit-x", contains: "padding" }, ...made };
    const compiled = vegaLite.compile(spec, { config: config() }).spec;
    const next = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: vega.expressionInterpreter,
      renderer: "svg",
      container,
      hover: true,
      logLevel: vega.Error,
    });
    container.setAttribute("role", "img");
    drawn.set(id, { make, view: next });
    await next.runAsync();
    // Meanwhile something else may have been drawn in its place.
    if (drawn.get(id).view !== next) return;
    // The container is the labelled picture; its parts say nothing on their own.
    container.querySelector("svg").setAttribute("aria-hidden", "true");
    count(container);
  }

  function count(container) {
    container.dataset.drawn = String(Number(container.dataset.drawn ?? 0) + 1);
  }

  // Draws what `make` describes, or writes the sentence that it returns where there is nothing to
  // draw; and again whenever the colours of the page or its layout change.
  function draw(id, make) {
    drawn.set(id, { make, view: drawn.get(id)?.view });
    return render(id);
  }

  // Gives the reader a chart as a file; its colours are those of the page.
  async function save(id, name) {
    const text = await drawn.get(id).view.toSVG();
    const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    cbo.element("a", { href: address, download: `${name}.svg` }).click();
    URL.revokeObjectURL(address);
  }

  for (const query of [matchMedia("(prefers-color-scheme: dark)"), NARROW]) {
    query.addEventListener("change", () => { for (const id of drawn.keys()) render(id); });
  }

  // Curves over evaluations; `values` have series, t, y and, for a band, low and high. What lies
  // outside of the scale is cut off. `across` says what else the horizontal axis is; the series `thin`
  // has a thin line, and the others a thick one.
  function curves({
    values, names, looks, thin, title, scale, axis: look, height, start, across = {},
    interpolate = "step-after",
  }) {
    const x = {
      field: "t", type: "quantitative", title: "evaluations",
      scale: { nice: false, zero: false }, axis: { grid: false }, ...across,
    };
    const axis = { field: "y", type: "quantitative", title, scale, axis: look };
    const style = styles(names, looks);
    const band = {
      mark: { type: "area", interpolate, opacity: 0.16, clip: true },
      transform: [{ filter: { field: "low", valid: true } }],
      encoding: { x, y: { ...axis, field: "low" }, y2: { field: "high" }, color: style.color },
    };
    const tooltip = [
      { field: "series", title: "optimizer" },
      { field: "t", title: x.title, format: ".4~g" },
      { field: "y", title, format: ".4~g" },
    ];
    const design = {
      data: { values: [{ t: start }] },
      mark: { type: "rule", color: colour("soft"), strokeDash: [1, 3] },
      encoding: { x: { field: "t", type: "quantitative" } },
    };
    const line = (strokeWidth, isDrawn) => ({
      data: { values: values.filter(({ series }) => isDrawn(series)) },
      mark: { type: "line", interpolate, strokeWidth, clip: true },
      encoding: { x, y: axis, ...style },
    });
    const lines = thin === undefined ? [line(2, () => true)]
      : [line(1, (series) => series === thin), line(2.5, (series) => series !== thin)];
    // Enough places to point at; one for every value would slow the page down.
    const stride = Math.ceil(values.length / Math.max(1, names.length) / 30);
    const hover = {
      data: { values: values.filter((_, i) => i % stride === 0) },
      mark: { type: "point", opacity: 0, size: 160, clip: true },
      encoding: { x, y: axis, color: style.color, tooltip },
    };
    const layers = values.some((value) => value.low !== undefined) ? [band] : [];
    if (start !== undefined) layers.unshift(design);
    return { height, data: { values }, layer: [...layers, ...lines, hover] };
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

  function power(exponent) {
    if (exponent === 0 || exponent === 1) return String(10 ** exponent);
    const raised = [...String(exponent)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
    return `10${raised.join("")}`;
  }

  // From the least to the largest value, with whole powers of ten, or between few of them with their
  // double and fivefold. Values that are close together have the powers round them.
  function decades(values) {
    const ends = values.flatMap(({ y, low = y, high = y }) => [low, high]).map(Math.log10);
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    const margin = 0.03 * (most - least);
    const [first, last] = [Math.floor(least), Math.max(Math.ceil(most), Math.floor(least) + 1)];
    const every = Array.from({ length: last - first + 1 }, (_, i) => first + i).flatMap((exponent) =>
      [1, 2, 5].map((factor) => ({ factor, exponent, value: Number(`${factor}e${exponent}`) })));
    const inside = every.filter(({ value }) =>
      Math.log10(value) >= least - margin && Math.log10(value) <= most + margin);
    const powers = (ticks) => ticks.filter((tick) => tick.factor === 1);
    const fits = inside.length > 1;
    const ticks = !fits ? powers(every) : powers(inside).length > 2 ? powers(inside) : inside;
    const edges = fits ? [least - margin, most + margin].map((end) => 10 ** end)
      : [ticks[0].value, ticks.at(-1).value];
    const whole = ticks.every((tick) => tick.factor === 1);
    const labels = ticks.map(({ factor, exponent, value }) => (whole ? power(exponent)
      : exponent >= -3 && exponent < 4 ? String(value)
        : factor === 1 ? power(exponent) : `${factor}·${power(exponent)}`));
    const numbers = ticks.map((tick) => tick.value);
    return {
      scale: { type: "log", domain: edges, nice: false },
      axis: {
        values: numbers,
        tickCount: numbers.length,
        labelExpr: `${JSON.stringify(labels)}[indexof(${JSON.stringify(numbers)}, datum.value)]`,
      },
    };
  }

  // The axis of shares: from nothing to the first of these that none exceeds.
  function shares(values) {
    const most = Math.max(...values.map(({ y }) => y));
    const top = [0.25, 0.5, 1].find((end) => most <= end) ?? 1;
    return { scale: { domain: [0, top] }, axis: { format: ".0%" } };
  }

  // A line for each name, in their order. A domain is data; sorting by a list would put the names
  // into an expression, and they come from strangers.
  function rows(field, names) {
    return { field, type: "nominal", sort: null, scale: { domain: names }, title: null };
  }

  // Values with intervals, one line each; `values` have name, y and, if known, low and high.
  function intervals({ values, title, domain }) {
    const names = values.map((value) => value.name);
    const narrow = NARROW.matches;
    const y = { ...rows("name", names), axis: { grid: false, ...(narrow ? BROKEN : {}) } };
    const scale = domain ? { domain, clamp: true } : { zero: true };
    const x = { field: "value", type: "quantitative", title, scale, axis: { grid: true } };
    const tooltip = [
      { field: "name", title: "name" },
      { field: "value", title, format: ".4~g" },
    ];
    return {
      height: (narrow ? 28 : 22) * names.length,
      data: { values },
      layer: [
        {
          transform: [{ filter: { field: "low", valid: true } }],
          mark: { type: "rule", strokeWidth: 2, opacity: 0.55, color: colour("series-1") },
          encoding: { y, x: { ...x, field: "low" }, x2: { field: "high" } },
        },
        {
          mark: { type: "point", filled: true, size: narrow ? 22 : 70, opacity: 1 },
          encoding: { y, x, tooltip },
        },
      ],
    };
  }

  return { draw, save, curves, toLog, decades, shares, intervals, rows, colour, paint };
})();
