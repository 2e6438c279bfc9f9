"use strict";
// What every page shares: its data, numbers as text, and tables that sort.
window.cbo = (() => {
  const block = document.getElementById("data");
  const data = block ? JSON.parse(block.textContent) : null;

  // Text only ever enters the page as text: names come from strangers.
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // Four digits, as the builder writes them.
  function format(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "NA";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size < 1e-3 || size >= 1e6) return value.toExponential(3).replace("e+", "e");
    return value.toFixed(Math.max(0, 3 - Math.floor(Math.log10(size))));
  }

  function fixed(value, digits) {
    return value === null || value === undefined ? "NA" : value.toFixed(digits);
  }

  function say(text) {
    const status = document.getElementById("status");
    if (status) status.textContent = text;
  }

  function key(row, column) {
    const text = row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    if (text === "") return null;
    const number = Number(text);
    return Number.isNaN(number) ? text : number;
  }

  // What is missing stands last, whichever way the column is sorted.
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "string" || typeof b === "string") {
      const [left, right] = [String(a), String(b)];
      return sign * (left < right ? -1 : left > right ? 1 : 0);
    }
    return sign * (a - b);
  }

  function sort(table, column, direction) {
    const body = table.tBodies[0];
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => ({ row, key: key(row, column) }));
    rows.sort((a, b) => compare(a.key, b.key, sign));
    // What stands under another row stays there, sorted likewise.
    const under = (name) => rows.filter(({ row }) => row.dataset.under === name);
    for (const { row } of rows.filter((entry) => entry.row.dataset.under === undefined)) {
      const own = row.dataset.name === undefined ? [] : under(row.dataset.name);
      body.append(row, ...own.map((entry) => entry.row));
    }
    for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
    table.tHead.rows[0].cells[column].setAttribute("aria-sort", direction);
    table.dispatchEvent(new CustomEvent("sorted"));
  }

  // Sorts once more as it is sorted now, after the numbers have changed.
  function resort(table) {
    const heads = [...table.tHead.rows[0].cells];
    const column = heads.findIndex((head) => head.hasAttribute("aria-sort"));
    if (column >= 0) sort(table, column, heads[column].getAttribute("aria-sort"));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const first = head.dataset.first ?? "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const direction = now === first ? other : first;
        sort(table, column, direction);
        say(`Sorted by ${button.textContent.trim()}, ${direction}.`);
      });
    });
  }

  // Student's 97.5 % quantile: the page brings those of 1, 2, ... degrees of freedom; beyond them
  // the first terms of its expansion around the normal one are right to eight digits.
  function student(freedom) {
    const z = 1.959963984540054;
    const known = data.student;
    if (freedom > known.length) {
      return z + (z ** 3 + z) / (4 * freedom) +
        (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2) +
        (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * freedom ** 3);
    }
    const place = freedom - 1;
    const [below, above] = [Math.floor(place), Math.ceil(place)].map((i) => known[i]);
    return below + (place % 1) * (above - below);
  }

  // What the reader chose stands in the address after "#", as in "#family=toy&kind=model-based",
  // so that a link shows the same; "#results" is a place on the page and chooses nothing.
  const address = {
    read: () => (location.hash.includes("=") ? new URLSearchParams(location.hash.slice(1)) : null),
    write: (pairs) => {
      const query = String(new URLSearchParams(pairs));
      if (!query && !location.hash.includes("=")) return;
      history.replaceState(null, "", query ? `#${query}` : location.href.split("#")[0]);
    },
    follow: (use) => window.addEventListener("hashchange", () => {
      const query = address.read();
      if (query) use(query);
    }),
  };

  return { data, student, address, element, format, fixed, say, resort };
})();
