{
const open = unit => {
  const box = document.querySelector(`#unit-${unit}`)?.closest("details");
  if (!box) return;
  box.open = true;
  box.scrollIntoView({ block: "nearest" });
  box.querySelector("summary").focus({ preventScroll: true });
  return true;
};
const explore = drawn => {
  const maps = JSON.parse(drawn.dataset.maps), view = drawn.closest(".view"), cursor = drawn.querySelector(".cursor");
  const readout = view.querySelector(".readout"), size = map => [map.rows.length, map.columns.length];
  let now;
  const show = (place, row, column) => {
    const { box: [left, top, width, height], rows, columns, cells } = maps[place];
    now = [place, row, column];
    readout.textContent = `${[rows[row], columns[column]].filter(Boolean).join(", ")}: ${cells[row][column]}`;
    const [wide, tall] = [width / columns.length, height / rows.length];
    const shares = { left: left + column * wide, top: top + row * tall, width: wide, height: tall };
    for (const name in shares) cursor.style[name] = `${100 * shares[name]}%`;
    cursor.hidden = false;
    view.querySelectorAll(".t").forEach(token => token.classList.toggle("on", +token.dataset.step === column));
  };
  const at = event => {
    const frame = drawn.getBoundingClientRect();
    const [x, y] = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    for (const [place, { box: [left, top, width, height], rows, columns }] of maps.entries()) {
      const [across, down] = [(x - left) / width, (y - top) / height];
      if (Math.min(across, down) >= 0 && Math.max(across, down) < 1)
        return [place, Math.floor(down * rows.length), Math.floor(across * columns.length)];
    }
  };
  const move = (down, across) => {
    let [place, row, column] = now;
    const [rows, columns] = size(maps[place]);
    [row, column] = [Math.min(rows - 1, Math.max(0, row + down)), column + across];
    const next = maps[place + Math.sign(across)];
    if (column < 0 || column >= columns) {
      if (!next) return;
      [place, row, column] = [place + across, Math.min(row, size(next)[0] - 1), across > 0 ? 0 : size(next)[1] - 1];
    }
    show(place, row, column);
  };
  const openUnit = () => open(readout.textContent.match(/unit (\d+)/)?.[1]);
  drawn.addEventListener("pointermove", event => { const cell = at(event); if (cell) show(...cell); });
  drawn.addEventListener("click", event => { const cell = at(event); if (cell) { show(...cell); openUnit(); } });
  drawn.addEventListener("keydown", event => {
    const way = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey || !maps.length || !(way || event.key === "Enter")) return;
    event.preventDefault();
    if (!now) show(0, 0, 0);
    else if (way) move(...way);
    else openUnit();
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  view.addEventListener("pointerover", event => {
    const token = event.target.closest?.(".t");
    if (token) show(0, +token.dataset.unit, +token.dataset.step);
  });
  if (maps.length) readout.textContent =
    "Point at a cell, or step through the maps with the arrow keys. A click, or Enter, opens the unit of a cell.";
};
document.querySelectorAll(".drawn").forEach(explore);
document.addEventListener("click", event => {
  const link = event.target.closest?.('a[href^="#unit-"]');
  if (link && open(link.hash.replace("#unit-", ""))) event.preventDefault();
});
}
