// The states: runs on the grid and on the graph, which play, pause and are dragged through their time.

const SIDE = 128;
const PLAY_SECONDS = 14;

// ------------------------------------------------------------------ runs
function startRuns() {
  const {model, settings} = view;
  view.grid ??= torus(SIDE);
  view.runs = {
    graph: new Run(model, view.small, settings, view.range),
    grid: new Run(model, view.grid, settings, view.range),
  };
  view.runs.graph.advanceTo(settings.T, 60);
  const wanted = view.isPlaying ? 0 : Math.min(settings.t, settings.T);
  settings.t = 0;
  drawn("graph", graphPicture(GRAPH));
  if (wanted > 0) {
    scrub(wanted);
    return;
  }
  drawEnergy();
  drawStates();
}

function drawEnergy() {
  const {model, settings, runs} = view;
  const series = [];
  for (const [where, run] of Object.entries(runs)) {
    model.fields.forEach((field, k) => {
      if (where === "grid" && k !== settings.field) return;
      series.push({
        name: `${model.fields.length > 1 ? `${field}, ` : ""}${where}`,
        xs: run.frames.map((f) => f.t),
        ys: run.energies.map((e) => e[k]),
        dash: where === "grid" ? "6 4" : undefined,
      });
    });
  }
  drawn(
    "energy",
    chart({
      id: "energy",
      title: "Laplacian energy",
      xlabel: "t",
      ylabel: "energy",
      isLog: true,
      height: 310,
      xrange: [0, settings.T],
      cursor: settings.t,
      series,
      words: "Laplacian energy over time",
    }),
  );
  const failed = Object.entries(runs)
    .filter(([, run]) => run.failed !== null)
    .map(([where, run]) => `diverged on the ${where} at t = ${shown(run.failed)}`);
  const ends = runs.graph.energies.at(-1);
  say(
    "energy-words",
    failed.length
      ? `The run ${failed.join(" and ")}.`
      : ends
        ? `At t = ${shown(runs.graph.time)} the energy on the graph is ${ends
            .map((e, k) => (model.fields.length > 1 ? `${shown(e)} (${model.fields[k]})` : shown(e)))
            .join(", ")}.`
        : "",
  );
}

function drawStates() {
  const {model, settings, runs} = view;
  const [onGrid, onGraph] = [runs.grid.at(settings.t), runs.graph.at(settings.t)];
  if (!onGrid || !onGraph) return;
  for (const [id, range] of [
    ["grid", drawGrid(byId("grid"), onGrid.states[settings.field], SIDE)],
    ["graph", view.drawn.graph.paint(onGraph.states[settings.field])],
  ]) {
    byId(id).parentElement.querySelector(".field-name").textContent = model.fields[settings.field];
    byId(`${id}-low`).textContent = shown(range[0]);
    byId(`${id}-high`).textContent = shown(range[1]);
  }
  byId("time").value = (1000 * settings.t) / settings.T;
  byId("time").setAttribute("aria-valuetext", `t = ${shown(settings.t)} of ${shown(settings.T)}`);
  byId("time-value").textContent = `t = ${shown(settings.t)}`;
  view.drawn.energy?.cursorAt(settings.t);
}

// ------------------------------------------------------------------ playing
function play(wanted = !view.isPlaying) {
  view.isPlaying = wanted;
  byId("play").textContent = wanted ? "Pause" : "Play";
  byId("play").setAttribute("aria-pressed", String(wanted));
  if (!wanted) {
    writeHash();
    return;
  }
  if (view.settings.t >= view.settings.T) rewind();
  Object.assign(view, {last: null, measured: {frames: 0, work: 0, since: performance.now()}});
  requestAnimationFrame(frame);
}

function rewind() {
  view.settings.t = 0;
  startRuns();
}

function frame(now) {
  if (!view.isPlaying) return;
  const {settings, runs, measured} = view;
  const began = performance.now();
  const elapsed = view.last === null ? 1 / 60 : Math.min(0.1, (now - view.last) / 1000);
  view.last = now;
  const target = Math.min(settings.T, settings.t + (elapsed * settings.T) / PLAY_SECONDS);
  for (const run of [runs.graph, runs.grid]) run.advanceTo(target, 9);
  const reached = runs.grid.isDone ? target : Math.min(target, runs.grid.time);
  settings.t = Math.max(settings.t, reached);
  drawStates();
  measured.frames++;
  measured.work += performance.now() - began;
  const spent = (performance.now() - measured.since) / 1000;
  if (spent > 0.5) {
    Object.assign(view, {framesPerSecond: measured.frames / spent, frameMilliseconds: measured.work / measured.frames});
    const each = runs.grid.taken ? (1000 * runs.grid.seconds) / runs.grid.taken : 0;
    byId("rate").textContent =
      `${view.framesPerSecond.toFixed(0)} frames a second; one step on the grid takes ${each.toFixed(2)} ms`;
    Object.assign(measured, {frames: 0, work: 0, since: performance.now()});
    drawEnergy();
  }
  if (settings.t >= settings.T) {
    drawEnergy();
    play(false);
    return;
  }
  requestAnimationFrame(frame);
}

// Moves to a time: a past one is looked up among the stored states, a future one is computed piece by piece.
function scrub(time) {
  const {settings, runs} = view;
  play(false);
  view.sought = time;
  for (const run of Object.values(runs)) run.advanceTo(time, 60);
  const isReached = Object.values(runs).every((run) => run.isDone || run.time >= time - 1e-9);
  settings.t = isReached ? time : Math.min(time, runs.grid.time);
  if (!isReached)
    requestAnimationFrame(() => {
      if (view.sought === time && view.runs === runs && !view.isPlaying) scrub(time);
    });
  drawStates();
  drawEnergy();
  writeHash();
}
