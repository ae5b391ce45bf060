{
const floats = codes => codes && new Float32Array(Uint8Array.from(atob(codes), one => one.charCodeAt(0)).buffer);
const text = number => !isFinite(number) ? "no number" : `${+number.toPrecision(3)}`.replace("-", "−");
const clip = number => Math.min(1, Math.max(0, number));
const explore = source => {
  const view = source.closest(".view"), one = name => view.querySelector(name);
  const [rows, middles, widths] = ["rows", "middles", "widths"].map(name => floats(source.dataset[name]));
  const scale = source.dataset.scale?.split(" ").map(Number);
  const share = place => clip((rows[place] - scale[0]) / (scale[1] - scale[0]) || 0).toFixed(3);
  const all = { s: true, o: rows, lane: middles };
  for (const kind in all) all[kind] = all[kind] ? [...view.querySelectorAll(`.${kind}`)] : [];
  const chosen = { s: -1, o: -1, lane: middles ? 0 : -1 }, count = all.s.length;
  const means = all.s.map(token => token.style.getPropertyValue("--v"));
  const named = (kind, place) => `${kind === "s" ? "source token" : "step"} ${place + 1}` +
    (all[kind][place].closest(".numbers") ? "" : `, “${all[kind][place].textContent}”`);
  const steps = one(".steps"), column = one(".column"), what = one(".what"), legend = one(".means .scale");
  const mean = what && [what, legend.firstChild, legend.lastChild].map(node => node.textContent);
  const whole = one(".whole"), hint = one(".status").textContent = one(".status").dataset.hint;
  const shade = () => {
    const [step, token] = [chosen.o, chosen.s];
    all.s.forEach((other, place) => other.style.setProperty(
      "--v", step < 0 ? means[place] : share(step * count + place)));
    all.o.forEach((other, place) => other.style.setProperty(
      "--v", token < 0 ? "0" : share(place * count + token)));
    steps?.classList.toggle("weighed", token >= 0 && all.o.length > 0);
    if (column) column.hidden = token < 0 || !all.o.length;
    if (column && token >= 0) column.querySelector(".whom").textContent = named("s", token);
    if (!what) return;
    const shown = step < 0 ? mean : [named("o", step), ...scale.map(text)];
    [what, legend.firstChild, legend.lastChild].forEach((node, place) => node.textContent = shown[place]);
    whole.disabled = step < 0;
  };
  const windowOf = (lane, token) => {
    const place = lane * count + token;
    return token < 0 ? [NaN, NaN] : [middles[place], widths[place]];
  };
  const look = () => {
    const token = chosen.s;
    if (!middles) return;
    one(".of-token").hidden = token < 0;
    one(".whose").textContent = token < 0 ? "" : `Windows of ${named("s", token)}`;
    all.lane.forEach((lane, place) => {
      const [middle, width] = windowOf(place, token), digits = count > 999 ? 0 : 1;
      lane.classList.toggle("nowhere", isNaN(middle));
      lane.querySelector(".span").textContent =
        isNaN(middle) ? "no number" : `${(middle + 1).toFixed(digits)} ± ${width.toFixed(digits)}`;
      const places = { from: middle - width, to: middle + width, center: middle, self: token };
      for (const name in places) lane.style.setProperty(`--${name}`, clip((places[name] + .5) / count));
    });
    const [middle, width] = windowOf(chosen.lane, token);
    all.s.forEach((other, place) => {
      other.classList.toggle("seen", Math.abs(place - middle) <= width || place === Math.round(middle));
      other.classList.toggle("middle", place === Math.round(middle));
    });
  };
  const describe = token => {
    const at = chosen.o < 0 ? "" : `; ${text(rows[chosen.o * count + token])} at ${named("o", chosen.o)}`;
    one(".status").textContent = token < 0 ? hint : all.s[token].title + at;
  };
  const choose = (kind, place) => {
    chosen[kind] = place;
    all[kind].forEach((other, number) => {
      other.setAttribute("aria-selected", number === place);
      other.tabIndex = number === Math.max(place, 0) ? 0 : -1;
    });
    shade(); look(); describe(chosen.s);
  };
  const locate = target => {
    const found = target.closest?.(".s, .o, .lane");
    const kind = Object.keys(all).find(name => all[name].includes(found));
    return kind ? [kind, all[kind].indexOf(found)] : [];
  };
  view.addEventListener("click", event => {
    const [kind, place] = locate(event.target);
    if (event.target === whole) choose("o", -1);
    else if (kind) choose(kind, kind !== "lane" && chosen[kind] === place ? -1 : place);
  });
  view.addEventListener("keydown", event => {
    const [kind, place] = locate(event.target), { key } = event, list = all[kind];
    if (!kind || event.ctrlKey || event.altKey || event.metaKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[key];
    const ends = { Home: 0, End: list.length - 1, Escape: kind === "lane" ? place : -1, Enter: place, " ": place }[key];
    if ((step ?? ends) === undefined) return;
    event.preventDefault();
    const next = ends ?? (chosen[kind] < 0 ? place : place + step);
    if (next >= list.length || next < -1 || (next < 0 && key !== "Escape")) return;
    choose(kind, next);
    list[Math.max(next, 0)].focus();
  });
  source.addEventListener("pointerover", event => describe(locate(event.target)[1] ?? chosen.s));
  source.addEventListener("pointerleave", () => describe(chosen.s));
  view.classList.add("live");
  for (const list of [all.s, all.o, all.lane]) list.forEach(other => {
    other.setAttribute("role", "option");
    other.parentElement.setAttribute("role", "listbox");
  });
  if (whole) whole.hidden = !all.o.length;
  for (const kind in chosen) choose(kind, chosen[kind]);
};
document.querySelectorAll(".source").forEach(explore);
}
