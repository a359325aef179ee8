// The page itself: one view, which holds a model and its settings, and everything that is drawn from them.

const view = {entry: null, model: null, settings: null, isPlaying: false, runs: {}, drawn: {}, setters: {}};

// ------------------------------------------------------------------ reading an equation
// Shows an equation, or why it cannot be read; returns whether it could be read.
async function choose(text, wanted = null) {
  const error = byId("equation-error");
  if (view.isPlaying) play(false);
  try {
    const entry = entryOf(text);
    const model = entry ? modelOfBundle(entry.bundle) : await modelFor(text);
    Object.assign(view, {entry, model, known: model, settings: settingsFor(model, entry, wanted)});
  } catch (problem) {
    if (!(problem instanceof LanguageError)) throw problem;
    if (!view.model) await choose(START.equation);
    showError(text, problem);
    return false;
  }
  error.hidden = true;
  document.querySelector("main").classList.remove("stale");
  byId("equation").removeAttribute("aria-invalid");
  build();
  return true;
}

// Free text: by the real parser where a server answers, else by the page.
async function modelFor(text) {
  if (!SERVED) return START.bundle && START.equation === text ? modelOfBundle(START.bundle) : modelOfText(text);
  const answer = await fetch(`/api/bundle?${new URLSearchParams({equation: text})}`);
  const {error, bundle} = await answer.json();
  if (error) throw new LanguageError(error.at, error.expected, error.got, error.remedy);
  return modelOfBundle(bundle);
}

function showError(text, problem) {
  const at = Math.max(0, Math.min(problem.at, text.length));
  const mark = Object.assign(document.createElement("pre"), {textContent: `${text}\n${" ".repeat(at)}^`});
  byId("equation-error").replaceChildren(
    `Cannot read the equation, column ${at + 1}: expected ${problem.expected}, got ${problem.got}; ${problem.remedy}.`,
    mark,
  );
  byId("equation-error").hidden = false;
  byId("catalogue").value = "";
  document.querySelector("main").classList.add("stale"); // what is shown belongs to the equation before
  Object.assign(byId("equation"), {value: text}).setAttribute("aria-invalid", "true");
}

// ------------------------------------------------------------------ building the controls of a model
function build() {
  const {entry, model, settings} = view;
  byId("equation").value = entry?.equation ?? model.text;
  byId("catalogue").value = entry?.name ?? "";
  byId("mathematics").innerHTML = systemMath(model.system, model.bundle?.latex);
  byId("coefficients").replaceChildren();
  view.setters = {};
  view.ranges = {};
  for (const [name, {sign}] of Object.entries(model.coefficients)) {
    const usual = defaultsFor(model, entry).coefficients[name];
    const [low, high] = sliderRange(usual, sign);
    view.ranges[name] = [Math.min(low, settings.coefficients[name]), Math.max(high, settings.coefficients[name])];
    view.setters[name] = slider(byId("coefficients"), {
      id: `c-${name.replace(/\W/g, "_")}`,
      name,
      value: settings.coefficients[name],
      low: view.ranges[name][0],
      high: view.ranges[name][1],
      change: (x) => {
        settings.coefficients[name] = x;
        refresh();
      },
    });
  }
  if (!Object.keys(model.coefficients).length) byId("coefficients").textContent = "This equation has no coefficients.";
  byId("times").replaceChildren();
  const around = (x) => [x / 50, x * 20];
  for (const name of ["T", "step"]) {
    const [low, high] = around(defaultsFor(model, entry)[name]);
    slider(byId("times"), {
      id: name,
      name,
      value: settings[name],
      low,
      high,
      isLog: true,
      change: (x) => {
        settings[name] = x;
        refresh();
      },
    });
  }
  for (const name of ["method", "normalisation", "start", "seed"]) byId(name).value = settings[name];
  options(
    byId("field"),
    model.fields.map((_, k) => k),
    settings.field,
    (k) => model.fields[k],
  );
  byId("field-line").hidden = model.fields.length < 2;
  for (const [k, id] of ["xname", "yname"].entries())
    options(byId(id), Object.keys(model.coefficients), settings.axes[k]);
  view.phaseKey = "";
  refresh();
}

// Where the equation is from, and what its answers are worth.
function sayOrigin() {
  const {entry, known, settings} = view;
  const outside = violated(known, settings.coefficients);
  byId("about").textContent = [
    entry ? `${entry.title}. ${entry.source}. ${entry.note}` : "",
    known.bundle ? "" : "Numbers are computed in the page; nothing is proved.",
    known.isNoisy ? "The page leaves out the noise and shows the drift." : "",
    outside.length ? `Answers are proved for ${outside.join(", ")}; these are computed in the page.` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

// ------------------------------------------------------------------ everything that follows from the settings
let waiting = false;
function refresh() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    recompute();
  });
}

function recompute() {
  const {settings, entry} = view;
  const model = (view.model = trusted(view.known, settings.coefficients));
  sayOrigin();
  if (settings.T / settings.step > 2e6) settings.step = settings.T / 2e6;
  const steady = steadyStates(model, settings.coefficients);
  settings.state = Math.min(settings.state, Math.max(0, steady.length - 1));
  const state = steady[settings.state] ?? null;
  options(
    byId("state"),
    steady.map((_, k) => k),
    settings.state,
    (k) => steady[k].words,
  );
  byId("state").title = stateNote(model, state);
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
  view.hashTimer = setTimeout(() => {
    view.ownHash = toHash(view);
    history.replaceState(null, "", view.ownHash);
  }, 150);
}
