// Sorts a table by a column when its header is pressed: numbers by data-value, otherwise text; empty cells go last.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const body = table.tBodies[0];
  const first = [...body.rows];
  heads.forEach((head, k) => {
    head.setAttribute("aria-sort", "none");
    head.querySelector("button").addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const cycle = numeric ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
      const order = cycle[(cycle.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
      heads.forEach((one) => one.setAttribute("aria-sort", one === head ? order : "none"));
      body.append(...(order === "none" ? first : sorted(first, k, numeric, order === "ascending" ? 1 : -1)));
    });
  });
}

function sorted(rows, k, numeric, sign) {
  const key = (row) => {
    const cell = row.cells[k];
    return numeric ? parseFloat(cell.dataset.value ?? "NaN") : cell.textContent.trim();
  };
  return [...rows].sort((one, other) => {
    const a = key(one), b = key(other);
    if (!numeric) return sign * a.localeCompare(b, "en");
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return sign * (a - b);
  });
}

// A link into a folded part opens it.
function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  for (let part = target?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  (target?.tagName === "SECTION" ? target.querySelector("details") : null)?.setAttribute("open", "");
  target?.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
