// The plane of two coefficients: what the equation does at every point, with a dot that can be dragged.

const COLUMNS = 80;
const ROWS = 56;
const PHASE_SAMPLES = 33;

// The label of a point in words; `near` is a steady state of a neighbouring point.
function phaseLabel(known, coefficients, near = {}) {
  const model = trusted(known, coefficients);
  const filter = hasAnswer(model.bundle?.classes) ? filterClass(model, coefficients, null) : null;
  if (filter && hasAnswer(model.bundle?.growth)) {
    const grows = valueAt(model.bundle.growth.rate, coefficients) > 0;
    return `${filter.kind}, ${grows ? "grows" : "no growth"}`;
  }
  const followed = near.state && !near.state.proved ? newton(model, coefficients, near.state.values) : null;
  const state = isLinear(model)
    ? null
    : followed
      ? {values: followed, proved: false}
      : steadyStates(model, coefficients)[0];
  near.state = state;
  if (!isLinear(model) && !state) return "no steady state found";
  const values = valuesAt(model, coefficients, state ? state.values : model.fields.map(() => 0));
  const matrixAt = (lam) => model.kinetics.matrix(values, lam);
  const leading = Array.from(
    {length: PHASE_SAMPLES},
    (_, k) => eigenvalues(matrixAt((LIMIT * k) / (PHASE_SAMPLES - 1)))[0],
  );
  const curves = {growth: leading.map(([x]) => x), frequency: leading.map(([, y]) => Math.abs(y)), matrixAt};
  if (model.fields.length === 1 && isLinear(model))
    return `${filterKindOf(curves.growth)}, ${Math.max(...curves.growth) > 1e-9 ? "grows" : "no growth"}`;
  return stabilityKind(curves);
}

function filterKindOf(growth) {
  const signs = [];
  growth.slice(1).forEach((value, k) => {
    const sign = Math.sign(value - growth[k]);
    if (Math.abs(value - growth[k]) > 1e-12 && sign !== signs.at(-1)) signs.push(sign);
  });
  return (
    {"": "all-pass", 1: "high-pass", "-1": "low-pass", "1,-1": "band-pass", "-1,1": "band-stop"}[signs.join()] ??
    "multi-band"
  );
}

const PHASE_COLOURS = {
  light: {
    "low-pass, no growth": "#cfe3f5",
    "low-pass, grows": "#8db8dc",
    "high-pass, no growth": "#fbdcc5",
    "high-pass, grows": "#f0ab7c",
    "band-pass, no growth": "#cdebdd",
    "band-pass, grows": "#86cdae",
    "band-stop, no growth": "#ecd6e6",
    "band-stop, grows": "#d3a1c5",
    "all-pass, no growth": "#e8ebee",
    "all-pass, grows": "#c3cad1",
    "multi-band, no growth": "#f3ebc7",
    "multi-band, grows": "#dcc877",
    stable: "#cfe3f5",
    marginal: "#e8ebee",
    turing: "#86cdae",
    wave: "#d3a1c5",
    hopf: "#f0ab7c",
    "unstable at 0": "#dcc877",
    "long-wave": "#b9dfcf",
    "anti-diffusion": "#ecd6e6",
    "no steady state found": "#c3cad1",
  },
  dark: {
    "low-pass, no growth": "#22384d",
    "low-pass, grows": "#3a6a96",
    "high-pass, no growth": "#4a3122",
    "high-pass, grows": "#96572a",
    "band-pass, no growth": "#1f4638",
    "band-pass, grows": "#2f8062",
    "band-stop, no growth": "#42283b",
    "band-stop, grows": "#7c4a6c",
    "all-pass, no growth": "#2c343c",
    "all-pass, grows": "#56616c",
    "multi-band, no growth": "#453d1c",
    "multi-band, grows": "#857328",
    stable: "#22384d",
    marginal: "#2c343c",
    turing: "#2f8062",
    wave: "#7c4a6c",
    hopf: "#96572a",
    "unstable at 0": "#857328",
    "long-wave": "#2a5f4d",
    "anti-diffusion": "#42283b",
    "no steady state found": "#56616c",
  },
};

// Labels of all cells, row by row from the bottom; it stops after every row, so that the page stays quick.
function* phaseCells(model, coefficients, [xname, xrange], [yname, yrange]) {
  const cells = [];
  const at = ([low, high], k, count) => low + ((k + 0.5) / count) * (high - low);
  for (let j = 0; j < ROWS; j++) {
    const near = {};
    for (let i = 0; i < COLUMNS; i++)
      cells.push(
        phaseLabel(model, {...coefficients, [xname]: at(xrange, i, COLUMNS), [yname]: at(yrange, j, ROWS)}, near),
      );
    yield cells;
  }
}

function phasePicture(cells, [xname, xrange], [yname, yrange], point) {
  const colours = palette();
  const fills = PHASE_COLOURS[isDark() ? "dark" : "light"];
  const [width, height, left, right, top, bottom] = [460, 330, 54, 14, 34, 40];
  const x = axis(...xrange, left, width - right);
  const y = axis(...yrange, height - bottom, top);
  const text = {"font-family": "system-ui, sans-serif", "font-size": 11.5, fill: colours.soft};
  const root = svg("svg", {xmlns: SVG, viewBox: `0 0 ${width} ${height}`});
  root.append(svg("rect", {width, height, fill: colours.paper}));
  const [dx, dy] = [(width - left - right) / COLUMNS, (height - top - bottom) / ROWS];
  for (let j = 0; j < ROWS; j++)
    for (let i = 0, from = 0; i < COLUMNS; i++) {
      const label = cells[j * COLUMNS + i];
      if (i + 1 < COLUMNS && cells[j * COLUMNS + i + 1] === label) continue;
      root.append(
        svg("rect", {
          x: left + from * dx,
          y: height - bottom - (j + 1) * dy,
          width: (i + 1 - from) * dx + 0.4,
          height: dy + 0.4,
          fill: fills[label] ?? colours.line,
          "shape-rendering": "crispEdges",
        }),
      );
      from = i + 1;
    }
  const fromZero = ([low, high]) => [low > 0 && low < high / 100 ? 0 : low, high];
  for (const value of ticks(...fromZero(xrange), 5))
    root.append(svg("text", {...text, x: x.at(value), y: height - bottom + 16, "text-anchor": "middle"}, shown(value)));
  for (const value of ticks(...fromZero(yrange), 5))
    root.append(svg("text", {...text, x: left - 6, y: y.at(value) + 4, "text-anchor": "end"}, shown(value)));
  root.append(
    svg(
      "text",
      {...text, x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"},
      GREEK[xname] ?? xname,
    ),
  );
  root.append(
    svg("text", {...text, x: 14, y: (top + height - bottom) / 2, "text-anchor": "middle"}, GREEK[yname] ?? yname),
  );
  let place = left;
  let row = 0;
  for (const label of new Set(cells)) {
    const size = 22 + 6.1 * label.length;
    if (place + size > width) {
      place = left;
      row++;
    }
    root.append(
      svg("rect", {
        x: place,
        y: 3 + 15 * row,
        width: 11,
        height: 11,
        fill: fills[label] ?? colours.line,
        stroke: colours.soft,
        "stroke-width": 0.5,
      }),
    );
    root.append(svg("text", {...text, fill: colours.ink, x: place + 16, y: 13 + 15 * row}, label));
    place += size + 6;
  }
  const dot = svg("circle", {
    cx: x.at(point[0]),
    cy: y.at(point[1]),
    r: 7.5,
    fill: colours.ink,
    stroke: colours.paper,
    "stroke-width": 2.5,
    class: "dot",
  });
  root.append(dot);
  root.valuesAt = (event) => {
    const box = root.getBoundingClientRect();
    const inside = (v, [low, high]) => Math.max(low, Math.min(high, v));
    return [
      inside(x.back(((event.clientX - box.left) / box.width) * width), xrange),
      inside(y.back(((event.clientY - box.top) / box.height) * height), yrange),
    ];
  };
  root.moveTo = ([px, py]) => {
    dot.setAttribute("cx", x.at(px));
    dot.setAttribute("cy", y.at(py));
  };
  return root;
}
