// Charts as SVG with colours written out, so that an exported file looks as the page does.

const SVG = "http://www.w3.org/2000/svg";
const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const palette = () =>
  isDark()
    ? {
        paper: "#1b2128",
        ink: "#e4e8ec",
        soft: "#9aa6b2",
        line: "#38424d",
        band: "#5c4a1f",
        series: ["#6cb6ff", "#ff9f6b", "#5fd3a8", "#e3a6cd", "#e9c46a", "#a3b0bd"],
      }
    : {
        paper: "#ffffff",
        ink: "#1c2128",
        soft: "#59636e",
        line: "#dfe4e9",
        band: "#fdf0d0",
        series: ["#0b62a8", "#c74e0b", "#007a59", "#8a3f72", "#8a6a00", "#59636e"],
      };

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const clipped = (values) => values.filter(Number.isFinite);

// Round numbers in a range; powers of ten on a logarithmic axis.
function ticks(low, high, count, isLog) {
  if (isLog) {
    const [from, to] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const stride = Math.max(1, Math.ceil((to - from) / count));
    return Array.from({length: Math.floor((to - from) / stride) + 1}, (_, k) => 10 ** (from + k * stride));
  }
  const raw = (high - low) / count;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * size >= raw) * size;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({length: Math.floor(high / step + 1e-9) - first + 1}, (_, k) => (first + k) * step);
}

// {low, high, isLog, at(value)}: where a value lies between two pixels.
function axis(low, high, from, to, isLog = false) {
  const f = isLog ? Math.log : (x) => x;
  const [a, b] = [f(low), f(high)];
  return {
    low,
    high,
    isLog,
    at: (value) => from + ((f(value) - a) / (b - a || 1)) * (to - from),
    back: (pixel) => a + ((pixel - from) / (to - from)) * (b - a),
  };
}

function rangeOf(values, isLog) {
  const usable = clipped(values).filter((v) => !isLog || v > 0);
  let [low, high] = usable.length ? [Math.min(...usable), Math.max(...usable)] : isLog ? [0.1, 1] : [0, 1];
  if (isLog) return low === high ? [low / 2, high * 2] : [Math.max(low, high * 1e-10) * 0.8, high * 1.25];
  if (high - low < 1e-12 * Math.max(1, Math.abs(high))) [low, high] = [low - 0.5, high + 0.5];
  const pad = 0.06 * (high - low);
  return [low - pad, high + pad];
}

function path(xs, ys, x, y) {
  let text = "";
  let isOpen = false;
  ys.forEach((value, k) => {
    const ok = Number.isFinite(value) && (!y.isLog || value > 0);
    if (ok)
      text += `${isOpen ? "L" : "M"}${x.at(xs[k]).toFixed(1)} ${Math.max(-1e4, Math.min(1e4, y.at(value))).toFixed(1)}`;
    isOpen = ok;
  });
  return text;
}

// chart({title, xlabel, ylabel, series: [{name, xs, ys, dash, points}], bands, cursor, isLog, xrange, yrange, level})
function chart(spec) {
  const colours = palette();
  const [width, height] = [spec.width ?? 460, spec.height ?? 250];
  const legendRows = spec.series.length > 1 ? 1 : 0;
  const [left, right, top, bottom] = [62, 14, 12 + 18 * legendRows, 40];
  const [xlow, xhigh] = spec.xrange ?? [0, LIMIT];
  const [ylow, yhigh] =
    spec.yrange ?? rangeOf(spec.series.flatMap((s) => [...s.ys]).concat(spec.level ?? []), spec.isLog);
  const x = axis(xlow, xhigh, left, width - right);
  const y = axis(ylow, yhigh, height - bottom, top, spec.isLog);
  const text = {"font-family": "system-ui, sans-serif", "font-size": 11.5, fill: colours.soft};
  const root = svg("svg", {
    xmlns: SVG,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `${spec.title}. ${spec.words ?? ""}`,
  });
  root.append(svg("rect", {width, height, fill: colours.paper}));
  const clip = `clip-${spec.id}`;
  root.append(
    svg(
      "clipPath",
      {id: clip},
      svg("rect", {x: left, y: top, width: width - left - right, height: height - top - bottom}),
    ),
  );
  for (const [from, to] of spec.bands ?? [])
    root.append(
      svg("rect", {
        x: x.at(from),
        y: top,
        width: Math.max(1, x.at(to) - x.at(from)),
        height: height - top - bottom,
        fill: colours.band,
      }),
    );
  for (const value of ticks(ylow, yhigh, 5, spec.isLog)) {
    root.append(svg("line", {x1: left, x2: width - right, y1: y.at(value), y2: y.at(value), stroke: colours.line}));
    root.append(svg("text", {...text, x: left - 6, y: y.at(value) + 4, "text-anchor": "end"}, shown(value)));
  }
  for (const value of ticks(xlow, xhigh, 6))
    root.append(svg("text", {...text, x: x.at(value), y: height - bottom + 16, "text-anchor": "middle"}, shown(value)));
  if (spec.level !== undefined)
    root.append(
      svg("line", {
        x1: left,
        x2: width - right,
        y1: y.at(spec.level),
        y2: y.at(spec.level),
        stroke: colours.soft,
        "stroke-width": 1.2,
      }),
    );
  root.append(
    svg("line", {x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, stroke: colours.soft}),
  );
  root.append(
    svg("text", {...text, x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, spec.xlabel),
  );
  root.append(
    svg(
      "text",
      {
        ...text,
        x: 12,
        y: (top + height - bottom) / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 12 ${(top + height - bottom) / 2})`,
      },
      spec.ylabel,
    ),
  );
  const drawing = svg("g", {"clip-path": `url(#${clip})`});
  spec.series.forEach((one, k) => {
    const colour = one.colour ?? colours.series[k % colours.series.length];
    if (one.points)
      one.xs.forEach((at, i) =>
        drawing.append(
          svg("circle", {cx: x.at(at), cy: y.at(one.ys[i]), r: 3.4, fill: "none", stroke: colour, "stroke-width": 1.4}),
        ),
      );
    else
      drawing.append(
        svg("path", {
          d: path(one.xs, one.ys, x, y),
          fill: "none",
          stroke: colour,
          "stroke-width": 2.2,
          "stroke-dasharray": one.dash,
          "stroke-linejoin": "round",
        }),
      );
  });
  root.append(drawing);
  if (spec.cursor !== undefined)
    root.append(
      svg("line", {
        class: "cursor",
        x1: x.at(spec.cursor),
        x2: x.at(spec.cursor),
        y1: top,
        y2: height - bottom,
        stroke: colours.ink,
        "stroke-dasharray": "2 3",
      }),
    );
  if (legendRows) root.append(legend(spec.series, colours, left, text));
  root.cursorAt = (value) => {
    const line = root.querySelector(".cursor");
    if (line) for (const end of ["x1", "x2"]) line.setAttribute(end, x.at(value));
  };
  return root;
}

function legend(series, colours, left, text) {
  const group = svg("g");
  let place = left;
  series.forEach((one, k) => {
    const colour = one.colour ?? colours.series[k % colours.series.length];
    if (one.points)
      group.append(svg("circle", {cx: place + 9, cy: 11, r: 3.4, fill: "none", stroke: colour, "stroke-width": 1.4}));
    else
      group.append(
        svg("line", {
          x1: place,
          x2: place + 18,
          y1: 11,
          y2: 11,
          stroke: colour,
          "stroke-width": 2.2,
          "stroke-dasharray": one.dash,
        }),
      );
    group.append(svg("text", {...text, fill: colours.ink, x: place + 23, y: 15}, one.name));
    place += 36 + 6.4 * one.name.length;
  });
  return group;
}

// ------------------------------------------------------------------ states
const COLOURS = COLOURMAP.map((hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)));
const shadeIndex = (value, low, high) =>
  Math.max(0, Math.min(COLOURS.length - 1, Math.round(((value - low) / (high - low || 1)) * (COLOURS.length - 1))));
const shade = (value, low, high) => COLOURMAP[Number.isFinite(value) ? shadeIndex(value, low, high) : 0];

function extremes(values) {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 1];
}

const PACKED = Uint32Array.from(COLOURS, ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);

function drawGrid(canvas, values, side) {
  const [low, high] = extremes(values);
  const context = canvas.getContext("2d");
  const image = (canvas.image ??= context.createImageData(side, side));
  const pixels = new Uint32Array(image.data.buffer);
  const scale = (COLOURS.length - 1) / (high - low || 1);
  for (let i = 0; i < pixels.length; i++) pixels[i] = PACKED[((values[i] - low) * scale + 0.5) | 0] ?? PACKED[0];
  context.putImageData(image, 0, 0);
  return [low, high];
}

// The small graph: edges once, then nodes whose colour changes.
function graphPicture(graph) {
  const colours = palette();
  const [width, height, pad] = [460, 440, 20];
  const place = ([px, py]) => [pad + px * (width - 2 * pad), pad + py * (height - 2 * pad)];
  const root = svg("svg", {
    xmlns: SVG,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": "The state on the small graph",
  });
  root.append(svg("rect", {width, height, fill: colours.paper}));
  for (const [i, j] of graph.edges) {
    const [[x1, y1], [x2, y2]] = [place(graph.layout[i]), place(graph.layout[j])];
    root.append(svg("line", {x1, y1, x2, y2, stroke: colours.line, "stroke-width": 1.3}));
  }
  const radius = Math.max(3.5, Math.min(11, 75 / Math.sqrt(graph.nodes)));
  const nodes = graph.layout.map((at) => {
    const [cx, cy] = place(at);
    const node = svg("circle", {cx, cy, r: radius, stroke: colours.soft});
    root.append(node);
    return node;
  });
  root.paint = (values) => {
    const [low, high] = extremes(values);
    nodes.forEach((node, k) => node.setAttribute("fill", shade(values[k], low, high)));
    return [low, high];
  };
  return root;
}
