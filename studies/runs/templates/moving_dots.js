// Maps of nodes over time: one slider for all panels, and the node of a dot on hover.
(() => {
  const NARROW = 170;
  const SECONDS = 6;
  const COLOURS = 7;
  const element = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  // The positions of the dots at a share of all times, interpolated linearly.
  function frame(panel, share) {
    const at = share * (panel.times.length - 1);
    const k = Math.min(Math.floor(at), Math.max(0, panel.times.length - 2));
    const part = panel.times.length > 1 ? at - k : 0;
    const [one, two] = [panel.places[k], panel.places[Math.min(k + 1, panel.times.length - 1)]];
    const mix = (a, b) => (1 - part) * a + part * b;
    return {time: mix(panel.times[k], panel.times[Math.min(k + 1, panel.times.length - 1)]), places: one.map((a, i) => mix(a, two[i]))};
  }

  function paint(panel, box, share, steps, word) {
    const [canvas, size] = [box.canvas, box.canvas.clientWidth];
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(size * scale)) canvas.width = canvas.height = Math.round(size * scale);
    const context = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const radius = Math.max(1.6, Math.min(4.5, 60 / Math.sqrt(panel.nodes.length)));
    const room = size - 4 * radius;
    const current = frame(panel, share);
    box.now = panel.nodes.map((_, i) => [0, 1].map((d) => 2 * radius + (current.places[2 * i + d] / steps) * room));
    box.title.textContent = `${panel.title}, ${word} = ${Number(current.time.toPrecision(3))}`;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, size, size);
    box.now.forEach(([x, y], i) => {
      context.fillStyle = style.getPropertyValue(panel.labels[i] < 0 ? "--line" : `--c${panel.labels[i] % COLOURS}`);
      context.fill(outline(panel.labels[i], x, size - y, radius));
    });
  }

  // The mark of a class: a disc for the first seven classes, then a square, a triangle and a diamond.
  function outline(label, x, y, r) {
    const shape = new Path2D();
    const corners = [[], [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[0, -1.3], [1.2, 1], [-1.2, 1]], [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]]];
    const form = corners[Math.floor(Math.max(label, 0) / COLOURS) % corners.length];
    if (!form.length) shape.arc(x, y, r, 0, 7);
    else form.forEach(([a, b], k) => (k ? shape.lineTo(x + a * r, y + b * r) : shape.moveTo(x + a * r, y + b * r)));
    shape.closePath();
    return shape;
  }

  // The names of the classes with their marks.
  function classLegend(all, known) {
    return element("div", {class: "classes"}, ...known.map((label) => {
      const mark = element("canvas", {width: 28, height: 28, style: "width:14px;height:14px", "aria-hidden": "true"});
      const context = mark.getContext("2d");
      context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--c${label % COLOURS}`);
      context.fill(outline(label, 14, 14, 9));
      return element("span", {}, mark, all.classes[label] ?? `class ${label}`);
    }));
  }

  function pointed(panel, box, event, classes) {
    const edge = box.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - edge.left, edge.bottom - event.clientY];
    let [best, least] = [-1, 12];
    box.now.forEach(([a, b], i) => {
      const distance = Math.hypot(a - x, b - y);
      if (distance < least) [best, least] = [i, distance];
    });
    const label = best < 0 || panel.labels[best] < 0 ? "without class" : classes[panel.labels[best]] ?? `class ${panel.labels[best]}`;
    box.tip.replaceChildren(...(best < 0 ? [] : [`node ${panel.nodes[best]}, ${label}`]));
    box.tip.style.left = `${Math.max(0, Math.min(x + 10, edge.width - box.tip.offsetWidth))}px`;
    box.tip.style.top = `${event.clientY - edge.top + 34}px`;
  }

  function build(figure, plot) {
    const all = JSON.parse(plot.querySelector("script").textContent);
    const boxes = all.panels.map((panel) => {
      const box = {canvas: element("canvas", {role: "img", "aria-label": `Map of the nodes of ${panel.title}`}), title: element("b"), tip: element("div", {class: "tip", role: "status"})};
      box.root = element("div", {class: "panel dots"}, box.title, box.canvas, box.tip);
      box.canvas.addEventListener("pointermove", (event) => pointed(panel, box, event, all.classes));
      box.canvas.addEventListener("pointerleave", () => box.tip.replaceChildren());
      return box;
    });
    const slider = element("input", {type: "range", min: 0, max: 1, step: 0.005, value: 0, "aria-label": "Time, from the first to the last"});
    const play = element("button", {type: "button"}, "play");
    const panels = element("div", {class: "panels"}, ...boxes.map((box) => box.root));
    const draw = () => {
      const columns = Math.max(1, Math.min(all.columns, boxes.length, Math.floor(plot.clientWidth / NARROW)));
      panels.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
      all.panels.forEach((panel, k) => paint(panel, boxes[k], Number(slider.value), all.steps, all.word));
    };
    let began = null;
    const step = (now) => {
      if (began === null) return;
      const share = Math.min(1, (now - began) / (1000 * SECONDS));
      slider.value = share;
      draw();
      if (share < 1) requestAnimationFrame(step);
      else stop();
    };
    const stop = () => { began = null; play.textContent = "play"; };
    play.addEventListener("click", () => {
      if (began !== null) return stop();
      const from = Number(slider.value) < 1 ? Number(slider.value) : 0;
      play.textContent = "pause";
      began = performance.now() - 1000 * SECONDS * from;
      requestAnimationFrame(step);
    });
    slider.addEventListener("input", () => { stop(); draw(); });
    figure.classList.add("drawn");
    const known = [...new Set(all.panels.flatMap((panel) => panel.labels))].filter((label) => label >= 0).sort((a, b) => a - b);
    plot.append(element("div", {class: "keys"}, play, slider), panels, ...(known.length > 1 ? [classLegend(all, known)] : []));
    draw();
    new ResizeObserver(draw).observe(plot);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  for (const plot of document.querySelectorAll(".plot.moving")) build(plot.closest("figure"), plot);
})();
