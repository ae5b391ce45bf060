{
// "38.6 ±1.1", "1,234", "7.5 min", "12 %" → a number to sort by; text as it is
const units = { min: 60, h: 3600 };
const key = cell => {
  const text = cell.textContent.trim(), found = text.match(/^\(?([-+−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*(min|h)?\b/);
  if (!found) return text.toLowerCase();
  return parseFloat(found[1].replace(/,/g, "").replace("−", "-")) * (units[found[2]] ?? 1);
};
const compare = (first, second, way) => {
  if (first === "" || second === "") return (first === "") - (second === "");  // empty cells come last
  const numbers = typeof first === "number" && typeof second === "number";
  return way * (numbers ? first - second : String(first).localeCompare(String(second), undefined, { numeric: true }));
};
const sort = (table, place) => {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], head = heads[place];
  const words = head.classList.contains("l") || head.textContent === "place";
  const now = head.getAttribute("aria-sort"), first = words ? "ascending" : "descending";
  const next = now ? (now === "ascending" ? "descending" : "ascending") : first;
  heads.forEach(cell => cell.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", next);
  const rows = [...body.rows].map(row => [key(row.cells[place]), row]);
  rows.sort((a, b) => compare(a[0], b[0], next === "ascending" ? 1 : -1));
  body.append(...rows.map(([, row]) => row));
};
const update = tools => {
  const table = document.getElementById(tools.dataset.table), rows = [...table.tBodies[0].rows];
  const words = tools.querySelector("input[type=search]").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
  const shown = rows.filter(row => !row.hidden).length;
  tools.querySelector("[role=status]").textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  const off = [...tools.querySelectorAll("input[type=checkbox]")].filter(box => !box.checked).map(box => box.value);
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    if (!head.dataset.kind || head.hidden === off.includes(head.dataset.kind)) return;
    for (const row of [table.tHead.rows[0], ...rows]) row.cells[place].hidden = off.includes(head.dataset.kind);
  });
};
const prepare = () => {
  for (const table of document.querySelectorAll("table.sorts")) {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (head.classList.contains("plain")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, place));
      head.append(button);
    });
  }
  for (const tools of document.querySelectorAll(".tools")) {
    tools.hidden = false;
    tools.addEventListener("input", () => update(tools));
    update(tools);
  }
};
document.addEventListener("DOMContentLoaded", prepare);
}
