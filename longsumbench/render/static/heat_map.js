const show = (cell, step) => {
  const view = cell.closest(".view"), column = view.querySelector(".strongest")?.cells[step + 1];
  view.querySelectorAll(".on").forEach(one => one.classList.remove("on"));
  [cell, column, view.querySelector(`.t[data-i="${step}"]`)].forEach(one => one?.classList.add("on"));
  view.querySelector(".readout").textContent = cell.title;
  (cell.closest(".heat") ?? view.querySelector(".heat")).current = cell.matches("td") ? cell : column;
  return column;
};
const point = event => {
  const cell = event.target.closest?.(".map td, .t");
  if (cell?.matches("td")) show(cell, cell.cellIndex - 1);
  if (!cell?.matches(".t")) return;
  const heat = cell.closest(".view").querySelector(".heat"), column = show(cell, +cell.dataset.i);
  const name = column.parentElement.cells[0].offsetWidth, left = column.offsetLeft - name - heat.scrollLeft;
  if (left < 0 || left > heat.clientWidth - name - 20) heat.scrollLeft += left - (heat.clientWidth - name) / 2;
};
const move = event => {
  const way = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!way || !event.target.matches?.(".heat") || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const body = event.target.querySelector("tbody"), now = event.target.current;
  const row = body.rows[now ? now.parentElement.sectionRowIndex + way[0] : 0] ?? now.parentElement;
  const cell = row.cells[now ? Math.max(1, now.cellIndex + way[1]) : 1] ?? now;
  cell.scrollIntoView({ block: "nearest", inline: "center" });
  show(cell, cell.cellIndex - 1);
};
const open = event => {
  const link = event.target.closest?.('a[href^="#unit-"]');
  const box = document.querySelector(link?.hash)?.closest("details");
  if (!box) return;
  event.preventDefault();
  box.open = true;
  box.scrollIntoView({ block: "nearest" });
  box.querySelector("summary").focus({ preventScroll: true });
};
document.querySelectorAll(".readout").forEach(one => one.textContent = "HINT");
document.addEventListener("pointerover", point);
document.addEventListener("keydown", move);
document.addEventListener("click", open);
