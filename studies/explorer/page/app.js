// The page itself: one view, which holds a model and its settings, and everything that is drawn from them.

const SIDE = 128;
const PLAY_SECONDS = 14;
const view = {entry: null, model: null, settings: null, isPlaying: false, runs: {}, drawn: {}, setters: {}};

// ------------------------------------------------------------------ reading an equation
async function choose(text, wanted = null) {
  const error = byId("equation-error");
  try {
    const entry = entryOf(text);
    const model = entry ? modelOfBundle(entry.bundle) : await modelFor(text);
    Object.assign(view, {entry, model, known: model, settings: settingsFor(model, entry, wanted)});
  } catch (problem) {
    if (!(problem instanceof LanguageError)) throw problem;
    showError(text, problem);
    return;
  }
  error.hidden = true;
  byId("equation").removeAttribute("aria-invalid");
  build();
}

// Free text: by the real parser where a server answers, else by the page.
async function modelFor(text) {
  if (!SERVED) return START.bundle && START.equation === text ? modelOfBundle(START.bundle) : modelOfText(text);
  const answer = await fetch(`/api/bundle?${new URLSearchParams({equation: text})}`);
  const told = await answer.json();
  if (told.error) throw new LanguageError(told.error.at, told.error.expected, told.error.got, told.error.remedy);
  return modelOfBundle(told.bundle);
}

function showError(text, problem) {
  const at = Math.max(0, Math.min(problem.at, text.length));
  const mark = Object.assign(document.createElement("pre"), {textContent: `${text}\n${" ".repeat(at)}^`});
  byId("equation-error").replaceChildren(`Cannot read the equation, column ${at + 1}: expected ${problem.expected}, got ${problem.got}; ${problem.remedy}.`, mark);
  byId("equation-error").hidden = false;
  byId("equation").setAttribute("aria-invalid", "true");
}

// ------------------------------------------------------------------ building the controls of a model
function build() {
  const {entry, model, settings} = view;
  byId("equation").value = entry?.equation ?? model.text;
  byId("catalogue").value = entry?.name ?? "";
  byId("mathematics").innerHTML = systemMath(model.system);
  byId("coefficients").replaceChildren();
  view.setters = {};
  view.ranges = {};
  for (const [name, {sign}] of Object.entries(model.coefficients)) {
    const usual = defaultsFor(model, entry).coefficients[name];
    const [low, high] = sliderRange(usual, sign);
    view.ranges[name] = [Math.min(low, settings.coefficients[name]), Math.max(high, settings.coefficients[name])];
    view.setters[name] = slider(byId("coefficients"), {id: `c-${name.replace(/\W/g, "_")}`, name, value: settings.coefficients[name], low: view.ranges[name][0], high: view.ranges[name][1],
      change: (x) => { settings.coefficients[name] = x; refresh(); }});
  }
  if (!Object.keys(model.coefficients).length) byId("coefficients").textContent = "This equation has none.";
  byId("times").replaceChildren();
  const around = (x) => [x / 50, x * 20];
  for (const name of ["T", "step"]) {
    const [low, high] = around(defaultsFor(model, entry)[name]);
    slider(byId("times"), {id: name, name, value: settings[name], low, high, isLog: true, change: (x) => { settings[name] = x; refresh(); }});
  }
  for (const name of ["method", "normalisation", "start", "seed"]) byId(name).value = settings[name];
  options(byId("field"), model.fields.map((_, k) => k), settings.field, (k) => model.fields[k]);
  byId("field-line").hidden = model.fields.length < 2;
  for (const [k, id] of ["xname", "yname"].entries()) options(byId(id), Object.keys(model.coefficients), settings.axes[k]);
  view.phaseKey = "";
  refresh();
}

// Where the equation is from, and what its answers are worth.
function sayOrigin() {
  const {entry, known, settings} = view;
  const outside = violated(known, settings.coefficients);
  byId("about").textContent = [
    entry ? `${entry.title}. ${entry.source}. ${entry.note}` : "", known.bundle ? "" : "Read in the page: numbers are computed here, nothing is proved.",
    known.isNoisy ? "Noise is left out: the page shows the drift." : "", outside.length ? `Answers are proved for ${outside.join(", ")}; here they are computed in the page.` : "",
  ].filter(Boolean).join(" ");
}

// ------------------------------------------------------------------ everything that follows from the settings
let waiting = false;
function refresh() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; recompute(); });
}

function recompute() {
  const {settings, entry} = view;
  const model = view.model = trusted(view.known, settings.coefficients);
  sayOrigin();
  if (settings.T / settings.step > 2e6) settings.step = settings.T / 2e6;
  const steady = steadyStates(model, settings.coefficients);
  settings.state = Math.min(settings.state, Math.max(0, steady.length - 1));
  const state = steady[settings.state] ?? null;
  options(byId("state"), steady.map((_, k) => k), settings.state, (k) => steady[k].words);
  byId("state-line").hidden = isLinear(model) || steady.length === 0;
  const modes = isLinear(model) || state ? modesOf(model, settings.coefficients, state) : null;
  view.small = smallGraph(GRAPH, settings.normalisation);
  const responses = responsesOf(model, settings, modes);
  Object.assign(view, {steady, modes, responses, range: startRange(model, entry, state)});
  drawResponse(responses);
  drawDispersion(modes);
  showVerdict(verdictOf(model, settings, modes, responses, view.small.rowSum), model.bundle ? "" : IN_PAGE);
  askServer();
  drawPhase();
  startRuns();
  writeHash();
}

function writeHash() {
  clearTimeout(view.hashTimer);
  view.hashTimer = setTimeout(() => { view.ownHash = toHash(view); history.replaceState(null, "", view.ownHash); }, 150);
}

const mark = (proved) => (proved ? "proved" : IN_PAGE);

function said(id, words, proved) {
  const note = Object.assign(document.createElement("span"), {className: "mark", textContent: ` (${mark(proved)})`});
  byId(id).replaceChildren(words, ...(proved === undefined ? [] : [note]));
}

function nothing(id, words) {
  byId(id).replaceChildren(Object.assign(document.createElement("div"), {className: "empty", textContent: words}));
  view.drawn[id] = null;
}

function drawn(id, picture) {
  view.drawn[id] = picture;
  byId(id).replaceChildren(picture);
}

function drawResponse(responses) {
  const {model, settings} = view;
  if (!responses) { nothing("response", `No response: ${model.noModes || "no steady state was found"}.`); said("response-words", ""); return; }
  const around = isLinear(model) ? "" : ` of a small deviation from the steady state after t = ${shown(responses.horizon)}`;
  const highest = Math.max(1e-300, ...clipped(responses.exact).map(Math.abs));
  const isLog = highest > 100;
  const ylabel = `${responses.isNorm ? "norm of the gain" : isLog ? "size of the gain" : "gain"}`;
  const fitted = (ys) => ys.map((y) => (isLog ? Math.max(Math.abs(y), highest * 1e-12) : Math.abs(y) > 4 * highest ? NaN : y));
  drawn("response", chart({id: "response", title: "Filter response", xlabel: "λ", ylabel, isLog, level: isLog ? 1 : 0, words: `Gain${around || ` after T = ${shown(settings.T)}`}, exact and by ${settings.method}`,
    yrange: isLog ? [Math.min(0.5, ...fitted(responses.exact)) / 2, highest * 4] : undefined,
    series: [{name: "exact flow", xs: FREQUENCIES, ys: fitted(responses.exact)}, {name: `${settings.method}, step ${shown(settings.step)}`, xs: FREQUENCIES, ys: fitted(responses.computed), dash: "6 4"}]}));
  const filter = filterClass(model, settings.coefficients, isLinear(model) ? view.modes : null);
  if (filter) said("response-words", `The flow is ${filter.words}`, filter.proved);
  else said("response-words", `Gain${around}; the dashed curve is what ${settings.method} makes of it`);
}

function bandsOf(growth) {
  const bands = [];
  growth.forEach((value, k) => {
    if (value <= 1e-9) return;
    if (k && growth[k - 1] > 1e-9) bands.at(-1)[1] = FREQUENCIES[k];
    else bands.push([FREQUENCIES[k], FREQUENCIES[k]]);
  });
  return bands;
}

function drawDispersion(modes) {
  const {model} = view;
  if (!modes) { nothing("dispersion", `No dispersion relation: ${model.noModes || "no steady state was found"}.`); said("dispersion-words", ""); return; }
  const series = [{name: "growth", xs: FREQUENCIES, ys: modes.growth}];
  if (modes.frequency.some((x) => x > 1e-9)) series.push({name: "frequency", xs: FREQUENCIES, ys: modes.frequency, dash: "6 4"});
  view.spectrum ??= spectrumOf(GRAPH);
  series.push({name: "modes of the graph", xs: view.spectrum, ys: view.spectrum.map((lam) => eigenvalues(modes.matrixAt(lam))[0][0]), points: true, colour: palette().series[2]});
  drawn("dispersion", chart({id: "dispersion", title: "Dispersion relation", xlabel: "λ", ylabel: "rate", level: 0, bands: bandsOf(modes.growth), series, words: "Growth rate of every frequency"}));
  const kind = stabilityKind(modes);
  const state = modes.state && !isLinear(model) ? ` at ${modes.state.words}` : "";
  said("dispersion-words", `${kind}: ${KINDS[kind]}${state}`, false);
}

function showVerdict({status, words, findings}, decided = "") {
  byId("verdict").dataset.status = status;
  const lead = Object.assign(document.createElement("b"), {textContent: status});
  const text = words.slice(status.length).replace(/^[: ]*/, " ");
  const note = Object.assign(document.createElement("span"), {className: "help", textContent: decided ? ` (${decided})` : ""});
  if (byId("verdict-words").textContent !== status + text + note.textContent) byId("verdict-words").replaceChildren(lead, text, note);
  byId("findings").tBodies[0].replaceChildren(...findings.map((f) => {
    const row = document.createElement("tr");
    const why = document.createElement("td");
    why.append(f.text, Object.assign(document.createElement("small"), {textContent: [f.reason, decided ? "" : mark(f.proved)].filter(Boolean).join("; ")}));
    row.append(...[f.topic, f.status].map((t) => Object.assign(document.createElement("td"), {textContent: t})), why);
    return row;
  }));
}

// The true preflight of these very numbers, where a server answers; the last question counts.
function askServer() {
  if (!SERVED) return;
  clearTimeout(view.question);
  view.question = setTimeout(async () => {
    const {model, settings} = view;
    const asked = JSON.stringify([model.text, settings.coefficients, settings.T, settings.step, settings.method, settings.normalisation]);
    const words = new URLSearchParams({equation: model.text, T: settings.T, step: settings.step, method: settings.method, normalisation: settings.normalisation, coefficients: JSON.stringify(settings.coefficients)});
    const told = await (await fetch(`/api/preflight?${words}`)).json();
    const now = JSON.stringify([view.model.text, view.settings.coefficients, view.settings.T, view.settings.step, view.settings.method, view.settings.normalisation]);
    if (told.report && asked === now) showVerdict({status: told.report.status, words: told.report.verdict, findings: told.report.findings}, "decided by rdgraph for these numbers");
  }, 400);
}

// ------------------------------------------------------------------ the phase diagram
function drawPhase() {
  const {model, settings} = view;
  const [x, y] = settings.axes;
  if (!y) { nothing("phase", "A phase diagram needs two coefficients."); said("phase-words", ""); return; }
  if (!model.kinetics) { nothing("phase", `No phase diagram: ${model.noModes}.`); said("phase-words", ""); return; }
  const axes = [[x, view.ranges[x]], [y, view.ranges[y]]];
  const others = Object.entries(settings.coefficients).filter(([name]) => name !== x && name !== y);
  const key = JSON.stringify([model.text, axes, others, isDark()]);
  const point = [settings.coefficients[x], settings.coefficients[y]];
  if (key !== view.phaseKey) {
    view.phaseKey = key;
    view.cells = null;
    if (!view.drawn.phase) nothing("phase", "Working it out …");
    fillPhase(key, phaseCells(view.known, {...settings.coefficients}, ...axes), axes);
  } else view.drawn.phase?.moveTo(point);
  const proved = hasAnswer(model.bundle?.classes) && hasAnswer(model.bundle?.growth);
  said("phase-words", `${x} = ${shown(point[0])}, ${y} = ${shown(point[1])}: ${phaseLabel(view.known, settings.coefficients)}`, proved);
}

// Rows of the plane, a few milliseconds at a time, until they are all there or others are wanted.
function fillPhase(key, rows, axes) {
  if (key !== view.phaseKey) return;
  const began = performance.now();
  let step = rows.next();
  while (!step.done && performance.now() - began < 12) { view.filled = step.value; step = rows.next(); }
  if (!step.done) { view.filled = step.value; setTimeout(() => fillPhase(key, rows, axes), 0); return; }
  view.cells = view.filled;
  drawn("phase", phasePicture(view.cells, ...axes, axes.map(([name]) => view.settings.coefficients[name])));
}

function moveTo(point) {
  view.settings.axes.forEach((name, k) => { view.settings.coefficients[name] = clean(point[k]); view.setters[name](point[k]); });
  refresh();
}

// ------------------------------------------------------------------ runs
function startRuns() {
  const {model, settings} = view;
  view.grid ??= torus(SIDE);
  view.runs = {graph: new Run(model, view.small, settings, view.range), grid: new Run(model, view.grid, settings, view.range)};
  view.runs.graph.advanceTo(settings.T, 60);
  const wanted = view.isPlaying ? 0 : Math.min(settings.t, settings.T);
  settings.t = 0;
  drawn("graph", graphPicture(GRAPH));
  if (wanted > 0) { scrub(wanted); return; }
  drawEnergy();
  drawStates();
}

function drawEnergy() {
  const {model, settings, runs} = view;
  const series = [];
  for (const [where, run] of Object.entries(runs)) {
    model.fields.forEach((field, k) => {
      if (where === "grid" && k !== settings.field) return;
      series.push({name: `${model.fields.length > 1 ? `${field}, ` : ""}${where}`, xs: run.frames.map((f) => f.t), ys: run.energies.map((e) => e[k]), dash: where === "grid" ? "6 4" : undefined});
    });
  }
  drawn("energy", chart({id: "energy", title: "Dirichlet energy", xlabel: "t", ylabel: "energy", isLog: true, height: 310, xrange: [0, settings.T], cursor: settings.t, series, words: "Dirichlet energy over time"}));
  const failed = Object.entries(runs).filter(([, run]) => run.failed !== null).map(([where, run]) => `diverged on the ${where} at t = ${shown(run.failed)}`);
  const ends = runs.graph.energies.at(-1);
  said("energy-words", failed.length ? `The run ${failed.join(" and ")}.` : ends ? `At t = ${shown(runs.graph.time)} the energy on the graph is ${ends.map(shown).join(", ")}.` : "");
}

function drawStates() {
  const {settings, runs} = view;
  const [onGrid, onGraph] = [runs.grid.at(settings.t), runs.graph.at(settings.t)];
  if (!onGrid || !onGraph) return;
  for (const [id, range] of [["grid", drawGrid(byId("grid"), onGrid.states[settings.field], SIDE)], ["graph", view.drawn.graph.paint(onGraph.states[settings.field])]]) {
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
  if (!wanted) { writeHash(); return; }
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
    byId("rate").textContent = `${view.framesPerSecond.toFixed(0)} frames a second, ${view.frameMilliseconds.toFixed(1)} ms of work in each; one step on the grid takes ${each.toFixed(2)} ms`;
    Object.assign(measured, {frames: 0, work: 0, since: performance.now()});
    drawEnergy();
  }
  if (settings.t >= settings.T) { drawEnergy(); play(false); return; }
  requestAnimationFrame(frame);
}

// Dragging the time: back it is remembered, forward it is computed, in pieces until the time is reached.
function scrub(time) {
  const {settings, runs} = view;
  play(false);
  view.sought = time;
  for (const run of Object.values(runs)) run.advanceTo(time, 60);
  const isReached = Object.values(runs).every((run) => run.isDone || run.time >= time - 1e-9);
  settings.t = isReached ? time : Math.min(time, runs.grid.time);
  if (!isReached) requestAnimationFrame(() => { if (view.sought === time && view.runs === runs && !view.isPlaying) scrub(time); });
  drawStates();
  drawEnergy();
  writeHash();
}
