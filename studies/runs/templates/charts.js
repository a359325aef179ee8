// Charts of a report: panels as SVG that fit the window, with values on hover, touch and arrow keys, and a legend whose
// buttons hide lines. Each figure holds its numbers as json; nothing is loaded.
(() => {
  const NARROW = 300;
  const DASHES = ["", "7 3", "9 3 2 3", "2 3"];
  const COLOURS = 7;
  const MARKED = 30;

  const holder = document.createElement("template");
  holder.innerHTML = "<svg></svg>";
  const SVG = holder.content.firstChild.namespaceURI;

  function svg(name, attributes = {}, ...children) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  function html(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
  const colour = (k) => `var(--c${k % COLOURS})`;
  // Later lines are thinner with smaller marks, so that overlapping lines stay visible.
  const stroke = (k) => 3.6 - 0.3 * (k % COLOURS);
  const size = (k) => 5.2 - 0.35 * (k % COLOURS);
  const dash = (k) => DASHES[Math.floor(k / COLOURS) % DASHES.length];
  function shown(value) {
    if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    return String(Number(value.toPrecision(5)));
  }

  // The outline of a mark: one form per colour.
  function mark(k, x, y, r) {
    const forms = [
      `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
      `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
      `M${x} ${y - 1.2 * r}l${1.15 * r} ${2 * r}h${-2.3 * r}z`,
      `M${x} ${y - 1.3 * r}l${1.3 * r} ${1.3 * r}l${-1.3 * r} ${1.3 * r}l${-1.3 * r} ${-1.3 * r}z`,
      `M${x} ${y + 1.2 * r}l${1.15 * r} ${-2 * r}h${-2.3 * r}z`,
      `M${x - r / 2.5} ${y - r * 1.2}h${r / 1.25}v${r * 0.8}h${r * 0.8}v${r / 1.25}h${-r * 0.8}v${r * 0.8}h${-r / 1.25}v${-r * 0.8}h${-r * 0.8}v${-r / 1.25}h${r * 0.8}z`,
      `M${x - r} ${y - r * 0.5}l${r * 0.5} ${-r * 0.5}l${r * 0.5} ${r * 0.5}l${r * 0.5} ${-r * 0.5}l${r * 0.5} ${r * 0.5}l${-r * 0.5} ${r * 0.5}l${r * 0.5} ${r * 0.5}l${-r * 0.5} ${r * 0.5}l${-r * 0.5} ${-r * 0.5}l${-r * 0.5} ${r * 0.5}l${-r * 0.5} ${-r * 0.5}l${r * 0.5} ${-r * 0.5}z`,
    ];
    return forms[k % forms.length];
  }

  // The position of a value on an axis, before scaling.
  const ALONG = {
    linear: (x) => x,
    log: Math.log10,
    symlog: (x) => (Math.abs(x) <= 1 ? x : Math.sign(x) * (1 + Math.log10(Math.abs(x)))),
  };

  // Round numbers in a range; powers of ten on a logarithmic axis, with 2 and 5 where there are few.
  function ticks(low, high, count, scale) {
    if (scale === "symlog" && Math.max(-low, high) > 1) {
      const powers = Array.from({length: 309}, (_, k) => 10 ** k).filter((value) => value <= Math.max(-low, high));
      const stride = Math.max(1, Math.ceil(powers.length / count));
      const chosen = powers.filter((_, k) => k % stride === 0);
      return [...chosen.map((value) => -value).reverse(), 0, ...chosen].filter((value) => value >= low && value <= high);
    }
    if (scale === "log") {
      const values = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
        for (const step of Math.log10(high / low) < 2.5 ? [1, 2, 5] : [1]) values.push(step * 10 ** power);
      const inside = values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
      const stride = Math.max(1, Math.ceil(inside.length / count));
      return inside.filter((_, k) => k % stride === 0);
    }
    const raw = (high - low) / count;
    const size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].find((m) => m * size >= raw) * size;
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({length: Math.floor(high / step + 1e-9) - first + 1}, (_, k) => (first + k) * step);
  }

  function range(values, scale) {
    const isLog = scale === "log";
    const known = values.filter((value) => isNumber(value) && (!isLog || value > 0));
    let [low, high] = [Infinity, -Infinity];
    for (const value of known) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (!known.length) return isLog ? [0.1, 1] : [0, 1];
    if (isLog) return low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
    if (scale === "symlog") return [Math.min(0, 1.2 * low) - 0.1, Math.max(0, 1.2 * high) + 0.1];
    if (high - low < 1e-9 * Math.max(1, Math.abs(high))) return [low - 0.5, high + 0.5];
    const pad = 0.05 * (high - low);
    return [low - pad, high + pad];
  }

  function axis(low, high, from, to, scale) {
    const f = ALONG[scale];
    const [a, b] = [f(low), f(high)];
    return {low, high, isLog: scale === "log", at: (value) => from + ((f(value) - a) / (b - a || 1)) * (to - from)};
  }

  // All y values of a line: its points, error bars and band.
  function spanned(line) {
    const values = line.y.filter(isNumber);
    for (const name of ["low", "high"]) values.push(...(line[name] ?? []));
    (line.error ?? []).forEach((e, k) => isNumber(e) && isNumber(line.y[k]) && values.push(line.y[k] - e, line.y[k] + e));
    return values;
  }

  function pathOf(line, x, y) {
    let [text, isOpen] = ["", false];
    line.y.forEach((value, k) => {
      const ok = isNumber(value) && isNumber(line.x[k]) && (!y.isLog || value > 0) && (!x.isLog || line.x[k] > 0);
      if (ok) text += `${isOpen ? "L" : "M"}${x.at(line.x[k]).toFixed(1)} ${y.at(value).toFixed(1)}`;
      isOpen = ok;
    });
    return text;
  }

  function bandOf(line, x, y) {
    const whole = line.x.map((_, k) => k).filter((k) => isNumber(line.low[k]) && isNumber(line.high[k]));
    const inside = (value) => (y.isLog ? Math.max(value, y.low) : value);
    const point = (name) => (k) => `${x.at(line.x[k]).toFixed(1)} ${y.at(inside(line[name][k])).toFixed(1)}`;
    if (!whole.length) return "";
    return `M${whole.map(point("high")).join("L")}L${whole.reverse().map(point("low")).join("L")}Z`;
  }

  function drawLine(line, k, x, y) {
    const group = svg("g", {stroke: colour(k), fill: colour(k)});
    if (line.low) group.append(svg("path", {d: bandOf(line, x, y), stroke: "none", opacity: 0.15}));
    (line.error ?? []).forEach((e, i) => {
      if (!isNumber(e) || !isNumber(line.y[i]) || !e) return;
      const [low, high] = [line.y[i] - e, line.y[i] + e].map((v) => y.at(y.isLog ? Math.max(v, y.low) : v).toFixed(1));
      const at = x.at(line.x[i]).toFixed(1);
      group.append(svg("path", {d: `M${at} ${low}V${high}m-3 0h6M${at - 3} ${low}h6`, "stroke-width": 1.1, fill: "none"}));
    });
    if (line.style !== "dots")
      group.append(
        svg("path", {d: pathOf(line, x, y), fill: "none", "stroke-width": stroke(k), "stroke-dasharray": dash(k) || undefined}),
      );
    if (line.style === "dots" || line.x.length <= MARKED)
      line.y.forEach((value, i) => {
        if (isNumber(value) && (!y.isLog || value > 0))
          group.append(svg("path", {d: mark(k, x.at(line.x[i]), y.at(value), size(k)), stroke: "none"}));
      });
    return group;
  }

  // A panel as SVG with the positions of its values: {root, x, xs, ...}.
  function drawPanel(panel, chart, width, hidden, limits) {
    const height = Math.max(210, Math.min(320, 0.72 * width));
    const rank = (label) => chart.looks[label];
    const lines = panel.lines.filter((line) => !hidden.has(line.label));
    const levels = Object.entries(panel.levels).filter(([label]) => !hidden.has(label));
    const [ylow, yhigh] = limits ?? range([...lines.flatMap(spanned), ...levels.map((l) => l[1])], panel.y_scale);
    const [xlow, xhigh] = range(panel.names.length ? [-0.5, panel.names.length - 0.5] : panel.lines.flatMap((l) => l.x), chart.x_scale);
    const marks = ticks(ylow, yhigh, 5, panel.y_scale);
    const left = 30 + 7 * Math.max(...marks.map((value) => shown(value).length));
    const slanted = panel.names.length > 0 && panel.names.some((name) => name.length * 7 > (width - left) / panel.names.length);
    const below = slanted ? 24 + 4.6 * Math.max(...panel.names.map((name) => name.length)) : 42;
    const [top, right, bottom] = [28, 12, height - below];
    const x = axis(xlow, xhigh, left, width - right, chart.x_scale);
    const y = axis(ylow, yhigh, bottom, top, panel.y_scale);
    const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "group", "aria-roledescription": "chart", "aria-label": `${panel.title}: ${panel.y_label || chart.y_label} against ${panel.x_label}. Arrow keys read values.`});
    root.append(svg("text", {class: "title", x: width / 2, y: 18, "text-anchor": "middle", style: `font-size:${Math.max(9, Math.min(13, (width - 12) / (0.62 * panel.title.length)))}px`}, panel.title));
    for (const value of marks) {
      root.append(svg("line", {class: "grid", x1: left, x2: width - right, y1: y.at(value), y2: y.at(value)}));
      root.append(svg("text", {x: left - 6, y: y.at(value) + 4, "text-anchor": "end"}, shown(value)));
    }
    panel.names.forEach((name, k) => {
      const position = slanted ? {transform: `translate(${x.at(k) + 4} ${bottom + 14}) rotate(-35)`, "text-anchor": "end"} : {x: x.at(k), y: bottom + 17, "text-anchor": "middle"};
      root.append(svg("text", position, name));
    });
    const xValues = [...new Set(panel.lines.flatMap((line) => line.x.filter(isNumber)))].sort((a, b) => a - b);
    const named = chart.x_scale === "log" && xValues.length <= 8 ? xValues : ticks(xlow, xhigh, Math.max(3, Math.floor(width / 75)), chart.x_scale);
    if (!panel.names.length)
      for (const value of named) root.append(svg("text", {x: x.at(value), y: bottom + 17, "text-anchor": "middle"}, shown(value)));
    root.append(svg("rect", {class: "frame", x: left, y: top, width: Math.max(0, width - right - left), height: bottom - top}));
    if (!panel.names.length) root.append(svg("text", {x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, panel.x_label));
    const middle = (top + bottom) / 2;
    root.append(svg("text", {x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})`}, panel.y_label || chart.y_label));
    for (const [label, value] of levels)
      if (isNumber(value)) root.append(svg("line", {x1: left, x2: width - right, y1: y.at(value), y2: y.at(value), stroke: colour(rank(label)), "stroke-dasharray": "2 3", "stroke-width": 1.6}));
    for (const line of lines) root.append(drawLine(line, rank(line.label), x, y));
    const guide = svg("line", {class: "guide", y1: top, y2: bottom, visibility: "hidden"});
    root.append(guide);
    const key = panel.names.length ? Math.round : (value) => value;  // dots near a name belong to it
    const seen = lines.flatMap((line) => line.x.filter((at, k) => isNumber(at) && isNumber(line.y[k])).map(key));
    return {root, x, xs: [...new Set(seen)].sort((a, b) => a - b), key, guide, lines, levels, rank, width};
  }

  function swatch(k, isDots, isLevel) {
    const node = svg("svg", {width: 26, height: 12, "aria-hidden": "true"});
    if (!isDots) node.append(svg("line", {x1: 0, x2: 26, y1: 6, y2: 6, stroke: colour(k), "stroke-width": 2, "stroke-dasharray": (isLevel ? "2 3" : dash(k)) || undefined}));
    if (!isLevel) node.append(svg("path", {d: mark(k, 13, 6, 4), fill: colour(k)}));
    return node;
  }

  // The text of the tooltip at an x value, from the largest y value to the smallest.
  function valuesAt(panel, chart, drawn, at) {
    const entries = [];
    for (const line of drawn.lines) {
      const k = line.x.findIndex((value) => isNumber(value) && drawn.key(value) === at);
      if (k < 0 || !isNumber(line.y[k])) continue;
      const error = isNumber(line.error?.[k]) && line.error[k] ? ` (${line.error_name} ${shown(line.error[k])})` : "";
      const band = isNumber(line.low?.[k]) ? ` (${shown(line.low[k])} to ${shown(line.high[k])})` : "";
      const count = isNumber(line.count?.[k]) ? `, ${line.count[k]} left` : "";
      entries.push([line.y[k], line.label, `${shown(line.y[k])}${error}${band}${count}`, line.style === "dots", false]);
    }
    for (const [label, value] of drawn.levels) if (isNumber(value)) entries.push([value, label, shown(value), false, true]);
    entries.sort((a, b) => b[0] - a[0]);
    const head = panel.names.length ? panel.names[at] : `${panel.x_label} ${shown(at)}`;
    const lines = entries.map(([, label, text, isDots, isLevel]) => html("span", {}, swatch(drawn.rank(label), isDots, isLevel), `${label}${isLevel ? " (dotted)" : ""}: ${text}`));
    return [html("b", {}, head ?? shown(at)), ...lines];
  }

  function readable(box, tip, panel, chart, drawn) {
    let index = -1;
    const show = (k) => {
      if (!drawn.xs.length) return;
      index = Math.max(0, Math.min(drawn.xs.length - 1, k));
      const at = drawn.x.at(drawn.xs[index]);
      for (const end of ["x1", "x2"]) drawn.guide.setAttribute(end, at);
      drawn.guide.setAttribute("visibility", "visible");
      tip.replaceChildren(...valuesAt(panel, chart, drawn, drawn.xs[index]));
      const wide = tip.offsetWidth;
      tip.style.top = "34px";
      tip.style.left = `${Math.max(0, at + 12 + wide <= drawn.width ? at + 12 : Math.max(0, at - 12 - wide))}px`;
    };
    const hide = () => { index = -1; drawn.guide.setAttribute("visibility", "hidden"); tip.replaceChildren(); };
    const pointed = (event) => {
      const at = event.clientX - drawn.root.getBoundingClientRect().left;
      let best = 0;
      drawn.xs.forEach((value, k) => { if (Math.abs(drawn.x.at(value) - at) < Math.abs(drawn.x.at(drawn.xs[best]) - at)) best = k; });
      show(best);
    };
    drawn.root.addEventListener("pointermove", pointed);
    drawn.root.addEventListener("pointerdown", pointed);
    drawn.root.addEventListener("pointerleave", hide);
    drawn.root.addEventListener("blur", hide);
    drawn.root.addEventListener("keydown", (event) => {
      const moves = {ArrowRight: index + 1, ArrowLeft: index < 0 ? drawn.xs.length - 1 : index - 1, Home: 0, End: drawn.xs.length - 1};
      if (event.key === "Escape") hide();
      else if (event.key in moves) { show(moves[event.key]); event.preventDefault(); }
    });
  }

  // The labels that a panel shows.
  const labelsOf = (panel) => [...new Set([...panel.lines.map((line) => line.label), ...Object.keys(panel.levels)])];

  // Whether every panel has a legend of its own: one for all would be long, and most of it would say nothing of a panel.
  const isSplit = (chart) => chart.labels.length > 8 && chart.panels.every((panel) => 2 * labelsOf(panel).length <= chart.labels.length);

  function legend(chart, labels, hidden, redraw) {
    const lines = chart.panels.flatMap((panel) => panel.lines);
    const keys = html("div", {class: "keys", role: "group", "aria-label": "Legend; click an entry to hide or show its line"});
    const buttons = labels.map((label) => {
      const named = lines.filter((line) => line.label === label);
      const button = html("button", {type: "button", "aria-pressed": "true"}, swatch(chart.looks[label], named.length > 0 && named.every((l) => l.style === "dots"), !named.length), label);
      button.addEventListener("click", () => {
        if (!hidden.delete(label)) hidden.add(label);
        renew();
      });
      return button;
    });
    const all = html("button", {type: "button"}, "all");
    const none = html("button", {type: "button"}, "none");
    all.addEventListener("click", () => { hidden.clear(); renew(); });
    none.addEventListener("click", () => { labels.forEach((label) => hidden.add(label)); renew(); });
    const renew = () => { buttons.forEach((b, k) => b.setAttribute("aria-pressed", String(!hidden.has(labels[k])))); redraw(); };
    keys.append(...buttons, ...(buttons.length > 3 && labels.length === chart.labels.length ? [all, none] : []));
    return keys;
  }

  function build(figure, plot) {
    const chart = JSON.parse(plot.querySelector("script").textContent);
    const hidden = new Set();
    const panels = html("div", {class: "panels"});
    const isByPanel = isSplit(chart);
    const hiddenIn = chart.panels.map(() => (isByPanel ? new Set() : hidden));
    const hint = html("p", {class: "hint"}, "Hover, tap or use the arrow keys to read values; click a legend entry to hide its line.");
    let last = 0;
    const draw = () => {
      const room = plot.clientWidth;
      if (!room) return;
      last = room;
      const columns = Math.max(1, Math.min(chart.columns, chart.panels.length, Math.floor(room / NARROW)));
      panels.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
      const width = Math.floor((room - 12 * (columns - 1)) / columns) - 2;
      const every = chart.panels.flatMap((p, k) => [...p.lines.filter((l) => !hiddenIn[k].has(l.label)).flatMap(spanned), ...Object.values(p.levels)]);
      const limits = chart.shared ? range(every, chart.panels[0].y_scale) : undefined;
      chart.panels.forEach((panel, k) => {
        const drawn = drawPanel(panel, chart, width, hiddenIn[k], limits);
        const tip = html("div", {class: "tip", role: "status"});
        boxes[k].replaceChildren(drawn.root, tip);
        readable(boxes[k], tip, panel, chart, drawn);
      });
    };
    const boxes = chart.panels.map(() => html("div", {class: "panel"}));
    panels.append(...boxes.map((box, k) => (isByPanel ? html("div", {class: "keyed"}, box, legend(chart, labelsOf(chart.panels[k]), hiddenIn[k], draw)) : box)));
    figure.classList.add("drawn");
    plot.append(...(isByPanel ? [] : [legend(chart, chart.labels, hidden, draw)]), panels, hint);
    draw();
    new ResizeObserver(() => { if (plot.clientWidth !== last) draw(); }).observe(plot);
  }

  for (const plot of document.querySelectorAll(".plot:not(.moving)")) build(plot.closest("figure"), plot);
})();
