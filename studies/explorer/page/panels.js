// The panels of a view: responses, modes, the verdict and the plane of two coefficients, drawn and put into words.

const mark = (proved) => (proved ? "proved" : IN_PAGE);
// What an answer rests on; an open question rests on nothing, and words that say "proved" need no second one.
const evidence = (finding) =>
  finding.status === "unknown" || (finding.proved && /proved/.test(finding.text)) ? "" : mark(finding.proved);

function say(id, words, proved) {
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
  if (!responses) {
    nothing("response", `No response: ${model.noModes || "no steady state was found"}.`);
    say("response-words", "");
    return;
  }
  const around = isLinear(model)
    ? ""
    : ` of a small perturbation of the steady state by t = ${shown(responses.horizon)}`;
  const highest = Math.max(1e-300, ...clipped(responses.exact).map(Math.abs));
  const isLog = highest > 100;
  const ylabel = `${responses.isNorm ? "norm of the gain" : isLog ? "size of the gain" : "gain"}`;
  const fitted = (ys) =>
    ys.map((y) => (isLog ? Math.max(Math.abs(y), highest * 1e-12) : Math.abs(y) > 4 * highest ? NaN : y));
  drawn(
    "response",
    chart({
      id: "response",
      title: "Filter response",
      xlabel: "λ",
      ylabel,
      isLog,
      level: isLog ? 1 : 0,
      words: `Gain${around || ` after T = ${shown(settings.T)}`}, exact and by ${settings.method}`,
      yrange: isLog ? [Math.min(0.5, ...fitted(responses.exact)) / 2, highest * 4] : undefined,
      series: [
        {name: "exact flow", xs: FREQUENCIES, ys: fitted(responses.exact)},
        {
          name: `${settings.method}, step ${shown(settings.step)}`,
          xs: FREQUENCIES,
          ys: fitted(responses.computed),
          dash: "6 4",
        },
      ],
    }),
  );
  const filter = filterClass(model, settings.coefficients, isLinear(model) ? view.modes : null);
  if (filter) say("response-words", `The flow is ${filter.words}`, filter.proved);
  else
    say(
      "response-words",
      `Gain${around}: exact flow (solid), ${settings.method} with step ${shown(settings.step)} (dashed)`,
    );
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
  if (!modes) {
    nothing("dispersion", `No dispersion relation: ${model.noModes || "no steady state was found"}.`);
    say("dispersion-words", "");
    return;
  }
  const series = [{name: "growth", xs: FREQUENCIES, ys: modes.growth}];
  if (modes.frequency.some((x) => x > 1e-9))
    series.push({name: "frequency", xs: FREQUENCIES, ys: modes.frequency, dash: "6 4"});
  view.spectrum ??= spectrumOf(GRAPH);
  series.push({
    name: "modes of the graph",
    xs: view.spectrum,
    ys: view.spectrum.map((lam) => eigenvalues(modes.matrixAt(lam))[0][0]),
    points: true,
    colour: palette().series[2],
  });
  drawn(
    "dispersion",
    chart({
      id: "dispersion",
      title: "Dispersion relation",
      xlabel: "λ",
      ylabel: "rate",
      level: 0,
      bands: bandsOf(modes.growth),
      series,
      words: "Growth rate of every frequency",
    }),
  );
  const kind = stabilityKind(modes);
  const state = modes.state && !isLinear(model) ? ` at ${modes.state.words}` : "";
  say("dispersion-words", `${kind}: ${KINDS[kind]}${state}`, false);
}

function showVerdict({status, words, findings}, decided = "") {
  byId("verdict").dataset.status = status;
  const lead = Object.assign(document.createElement("b"), {textContent: status});
  const text = words.slice(status.length).replace(/^[: ]*/, " ");
  const note = Object.assign(document.createElement("span"), {
    className: "help",
    textContent: decided ? ` (${decided})` : "",
  });
  if (byId("verdict-words").textContent !== status + text + note.textContent)
    byId("verdict-words").replaceChildren(lead, text, note);
  byId("findings").tBodies[0].replaceChildren(
    ...findings.map((f) => {
      const row = document.createElement("tr");
      const why = document.createElement("td");
      why.append(
        f.text,
        Object.assign(document.createElement("small"), {
          textContent: [...new Set([f.reason, decided ? "" : evidence(f)])].filter(Boolean).join("; "),
        }),
      );
      row.append(...[f.topic, f.status].map((t) => Object.assign(document.createElement("td"), {textContent: t})), why);
      return row;
    }),
  );
}

// The true preflight of these very numbers, where a server answers; the last question counts.
function askServer() {
  if (!SERVED) return;
  clearTimeout(view.question);
  view.question = setTimeout(async () => {
    const {model, settings} = view;
    const asked = JSON.stringify([
      model.text,
      settings.coefficients,
      settings.T,
      settings.step,
      settings.method,
      settings.normalisation,
    ]);
    const words = new URLSearchParams({
      equation: model.text,
      T: settings.T,
      step: settings.step,
      method: settings.method,
      normalisation: settings.normalisation,
      coefficients: JSON.stringify(settings.coefficients),
    });
    const {report} = await (await fetch(`/api/preflight?${words}`)).json();
    const now = JSON.stringify([
      view.model.text,
      view.settings.coefficients,
      view.settings.T,
      view.settings.step,
      view.settings.method,
      view.settings.normalisation,
    ]);
    if (report && asked === now)
      showVerdict(
        {
          status: report.outcome,
          words: report.verdict,
          findings: report.findings.map((f) => ({...f, status: f.outcome})),
        },
        "decided by rdgraph for these numbers",
      );
  }, 400);
}

// ------------------------------------------------------------------ the phase diagram
function drawPhase() {
  const {model, settings} = view;
  const [x, y] = settings.axes;
  if (!y) {
    nothing("phase", "A phase diagram needs two coefficients.");
    say("phase-words", "");
    return;
  }
  if (!model.kinetics) {
    nothing("phase", `No phase diagram: ${model.noModes}.`);
    say("phase-words", "");
    return;
  }
  const axes = [
    [x, view.ranges[x]],
    [y, view.ranges[y]],
  ];
  const others = Object.entries(settings.coefficients).filter(([name]) => name !== x && name !== y);
  const key = JSON.stringify([model.text, axes, others, isDark()]);
  const point = [settings.coefficients[x], settings.coefficients[y]];
  if (key !== view.phaseKey) {
    view.phaseKey = key;
    view.cells = null;
    if (!view.drawn.phase) nothing("phase", "Computing …");
    fillPhase(key, phaseCells(view.known, {...settings.coefficients}, ...axes), axes);
  } else view.drawn.phase?.moveTo(point);
  const proved = hasAnswer(model.bundle?.classes) && hasAnswer(model.bundle?.growth);
  say(
    "phase-words",
    `${x} = ${shown(point[0])}, ${y} = ${shown(point[1])}: ${phaseLabel(view.known, settings.coefficients)}`,
    proved,
  );
}

// Rows of the plane, a few milliseconds at a time, until they are all there or others are wanted.
function fillPhase(key, rows, axes) {
  if (key !== view.phaseKey) return;
  const began = performance.now();
  let step = rows.next();
  while (!step.done && performance.now() - began < 12) {
    view.filled = step.value;
    step = rows.next();
  }
  if (!step.done) {
    view.filled = step.value;
    setTimeout(() => fillPhase(key, rows, axes), 0);
    return;
  }
  view.cells = view.filled;
  drawn(
    "phase",
    phasePicture(
      view.cells,
      ...axes,
      axes.map(([name]) => view.settings.coefficients[name]),
    ),
  );
}

function moveTo(point) {
  view.settings.axes.forEach((name, k) => {
    view.settings.coefficients[name] = clean(point[k]);
    view.setters[name](point[k]);
  });
  refresh();
}
