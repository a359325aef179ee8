// What can be taken along: a picture as png or svg, its numbers as csv, and Python that computes them again.

function save(name, blob) {
  const link = Object.assign(document.createElement("a"), {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  byId("export-status").textContent = `saved ${name}`;
}

const wanted = () => byId("export-what").value;

// The picture as SVG text; the grid is an image in one.
function svgText(what) {
  if (what === "grid") {
    const image = byId("grid").toDataURL("image/png");
    const picture = `<image href="${image}" width="${SIDE}" height="${SIDE}" style="image-rendering: pixelated"/>`;
    return `<svg xmlns="${SVG}" viewBox="0 0 ${SIDE} ${SIDE}" width="512" height="512">${picture}</svg>`;
  }
  return view.drawn[what] ? new XMLSerializer().serializeToString(view.drawn[what]) : null;
}

function pngOf(what, done) {
  const text = svgText(what);
  const image = new Image();
  const [width, height] =
    what === "grid"
      ? [512, 512]
      : view.drawn[what]
          .getAttribute("viewBox")
          .split(" ")
          .slice(2)
          .map((x) => 2 * Number(x));
  image.onload = () => {
    const canvas = Object.assign(document.createElement("canvas"), {width, height});
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = what !== "grid";
    context.drawImage(what === "grid" ? byId("grid") : image, 0, 0, width, height);
    canvas.toBlob(done, "image/png");
  };
  image.width = width;
  image.height = height;
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

const rowsText = (rows) => `${rows.map((row) => row.join(",")).join("\n")}\n`;

// The numbers behind a picture, with a line of names.
function csvOf(what) {
  const {model, settings, modes, responses, runs} = view;
  switch (what) {
    case "response":
      return (
        responses &&
        rowsText([
          ["lam", "exact", settings.method],
          ...Array.from(FREQUENCIES, (lam, k) => [lam, responses.exact[k], responses.computed[k]]),
        ])
      );
    case "dispersion":
      return (
        modes &&
        rowsText([
          ["lam", "growth", "frequency"],
          ...Array.from(FREQUENCIES, (lam, k) => [lam, modes.growth[k], modes.frequency[k]]),
        ])
      );
    case "energy":
      return rowsText([
        ["where", "t", ...model.fields],
        ...Object.entries(runs).flatMap(([where, run]) => run.frames.map((f, k) => [where, f.t, ...run.energies[k]])),
      ]);
    case "phase": {
      const [x, y] = settings.axes;
      const at = (name, k, count) =>
        view.ranges[name][0] + ((k + 0.5) / count) * (view.ranges[name][1] - view.ranges[name][0]);
      return (
        view.drawn.phase &&
        rowsText([
          [x, y, "what"],
          ...view.cells.map((label, k) => [
            at(x, k % COLUMNS, COLUMNS),
            at(y, Math.floor(k / COLUMNS), ROWS),
            `"${label}"`,
          ]),
        ])
      );
    }
    default: {
      const {t, states} = runs[what].at(settings.t);
      const values = (i) => states.map((one) => one[i]);
      return rowsText([
        ["t", "node", ...model.fields],
        ...Array.from({length: runs[what].graph.nodes}, (_, i) => [t, i, ...values(i)]),
      ]);
    }
  }
}

// A program for rdgraph that runs the same equation on the same graph from the same start.
function pythonOf() {
  const {model, settings, range} = view;
  const entries = Object.entries(settings.coefficients);
  const asDict = (pairs) => pairs.map(([name, value]) => `"${name}": ${value}`).join(", ");
  const numbers = asDict(entries);
  const scalars = asDict(entries.filter(([name]) => model.coefficients[name].kind !== "matrix"));
  const shape = {
    noise: "shape = 2 * noise.reshape(len(fields), nodes) - 1",
    checker: "shape = np.where(np.arange(nodes) % 2, -1.0, 1.0) * np.ones((len(fields), 1))",
    spots: "shape = (np.arange(nodes) % 7 == 0) * np.ones((len(fields), 1))",
  }[settings.start];
  const mask = model.system.kinds.has("M")
    ? '\nvalues["M"] = torch.as_tensor(np.arange(nodes) < nodes / 2, dtype=torch.float64)'
    : "";
  const matrix = model.system.kinds.has("W")
    ? '\nvalues["W"] = torch.full((1, 1), values["W"], dtype=torch.float64)'
    : "";
  return `"""A view of the rdgraph explorer on the graph ${GRAPH.name}."""

import numpy as np
import torch

import rdgraph as rd

system = rd.parse(${JSON.stringify(model.text)})
fields = ${JSON.stringify(model.fields)}
values = {${numbers}}
edges = ${JSON.stringify(GRAPH.edges)}
nodes = ${GRAPH.nodes}

graph = rd.Graph.from_edges(np.array(edges + [[j, i] for i, j in edges]).T, num_nodes=nodes)
operator = graph.operator("${settings.normalisation}", dtype=torch.float64)${mask}${matrix}

# The start: the page's random numbers, x -> 1664525 x + 1013904223 modulo 2^32.
number, drawn = ${settings.seed}, []
for _ in range(len(fields) * nodes):
    number = (1664525 * number + 1013904223) % 2**32
    drawn.append(number / 2**32)
noise = np.array(drawn)
${shape}
base, amplitude = np.array(${JSON.stringify(range.base)}), np.array(${JSON.stringify(range.amplitude)})
starts = torch.as_tensor(base[:, None] + amplitude[:, None] * shape)[..., None]
start = starts[0] if len(fields) == 1 else dict(zip(fields, starts))

field = rd.lower(system, operator, values)
solution = rd.solve(field, start, [0.0, ${settings.T}], method="${settings.method}", step=${settings.step})
for name in fields:
    final = solution.final if len(fields) == 1 else solution[name][-1]
    print(name, *final.flatten().tolist())

run = {"T": ${settings.T}, "method": "${settings.method}", "step": ${settings.step}}
numbers = {${scalars}}
report = rd.preflight(system, values=numbers, normalisation="${settings.normalisation}", **run)
print(report.verdict)
`;
}

function listenToExports() {
  const none = () => {
    byId("export-status").textContent = "There is no such picture for this equation.";
  };
  byId("export-svg").addEventListener("click", () => {
    const text = svgText(wanted());
    if (text) save(`${wanted()}.svg`, new Blob([text], {type: "image/svg+xml"}));
    else none();
  });
  byId("export-png").addEventListener("click", () => {
    if (wanted() === "grid" || view.drawn[wanted()]) pngOf(wanted(), (blob) => save(`${wanted()}.png`, blob));
    else none();
  });
  byId("export-csv").addEventListener("click", () => {
    const text = csvOf(wanted());
    if (text) save(`${wanted()}.csv`, new Blob([text], {type: "text/csv"}));
    else none();
  });
  byId("export-python").addEventListener("click", () =>
    save("view.py", new Blob([pythonOf()], {type: "text/x-python"})),
  );
  byId("copy-link").addEventListener("click", async () => {
    history.replaceState(null, "", (view.ownHash = toHash(view)));
    try {
      await navigator.clipboard.writeText(location.href);
      byId("export-status").textContent = "copied the address";
    } catch {
      byId("export-status").textContent = "the address in the bar is this view";
    }
  });
}
