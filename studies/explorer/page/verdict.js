// Is this run safe? The rules of rdgraph's preflight, with limits and rates that the core proved where there are some.

const MAX_AMPLIFICATION = 1e6;
const MAX_RELATIVE_ERROR = 0.1;
const IN_PAGE = "computed in the page, not proved";

function verdictOf(model, settings, modes, responses, rowSum) {
  const findings = [
    ...existenceFindings(model, settings, rowSum),
    ...stepFindings(model, settings, modes, rowSum),
    ...growthFindings(model, settings, modes),
    ...fidelityFindings(model, settings, responses),
  ];
  const status =
    [
      ["problem", "unsafe"],
      ["unknown", "undecided"],
      ["if", "safe if"],
    ].find(([kind]) => findings.some((f) => f.status === kind))?.[1] ?? "safe";
  const wanted = {unsafe: "problem", undecided: "unknown", "safe if": "if", safe: "ok"}[status];
  const reasons = findings
    .filter((f) => f.status === wanted)
    .map((f) => f.text)
    .join("; ");
  const lead = {safe: "safe: ", unsafe: "unsafe because ", "safe if": "safe if ", undecided: "undecided: "}[status];
  return {status, words: lead + reasons, findings};
}

// Intervals in a sentence, such as [0, beta/alpha], with the numbers of their ends; one that cannot be read stays.
function withNumbers(text, values) {
  const words = vocabulary(Object.keys(values).map((name) => [name, "scalar"]));
  const numberOf = (formula) => shown(dual(readExpression(formula, words), values, {}, 0)[0]);
  return text.replace(/\[([^[\],]+), ([^[\],]+)\]/g, (interval, low, high) => {
    try {
      return `[${numberOf(low)}, ${numberOf(high)}]`;
    } catch (problem) {
      if (problem instanceof LanguageError) return interval;
      throw problem;
    }
  });
}

function existenceFindings(model, settings, rowSum) {
  const known = model.bundle?.existence[settings.normalisation];
  const values = {...settings.coefficients, s: rowSum, T: settings.T};
  if (Array.isArray(known)) return known.map((f) => ({...f, text: withNumbers(f.text, values), proved: true}));
  const reason =
    known?.reason ?? "the page cannot decide it; rdgraph explore --serve and rdgraph preflight can";
  return [
    {topic: "existence", status: "unknown", text: "existence for all time is undecided", reason, proved: false},
  ];
}

// ------------------------------------------------------------------ steps
function stepFindings(model, settings, modes, rowSum) {
  const steps = model.bundle?.steps[settings.normalisation];
  if (!model.bundle) return linearisedFindings(model, settings, modes);
  if (!hasAnswer(steps))
    return [
      {
        topic: "step",
        status: "unknown",
        text: `no step limit for ${settings.method} is known`,
        reason: steps?.reason ?? "",
        proved: false,
      },
      ...linearisedFindings(model, settings, modes),
    ];
  const norms = Object.entries(model.coefficients)
    .filter(([, {kind}]) => kind === "matrix")
    .map(([name]) => [`norm_${name}`, Math.abs(settings.coefficients[name])]);
  const values = {...settings.coefficients, ...Object.fromEntries(norms), s: rowSum, T: settings.T};
  if (steps.rate) return [fieldsStep(steps, settings, values), ...linearisedFindings(model, settings, modes)];
  const limit = chosenLimit(steps.limits[settings.method], settings, values);
  if (limit.value === null)
    return [
      {
        topic: "step",
        status: "unknown",
        text: `no step limit for ${settings.method} is known`,
        reason: limit.means,
        proved: false,
      },
    ];
  if (limit.keeps === "equal slopes") return [equalStep(limit, settings, values)];
  if (limit.keeps === "slopes" || limit.keeps === "distances") return [slopeStep(limit, settings, values)];
  return [boundedStep(limit, settings, values, model)];
}

// The first limit holds near equal states. One for all states, the second, replaces it where the step is within it
// (equal slopes), or where the first allows the step (linearised).
function chosenLimit([first, wider], settings, values) {
  if (!wider) return first;
  const exceeds = (limit) => settings.step > limitAt(limit, values);
  if (first.keeps === "linearised") return exceeds(first) ? first : wider;
  const holds = wider.keeps === "slopes" && limitAt(wider, values) !== null && !exceeds(wider);
  return holds ? wider : first;
}

const usesRadius = (formula) => /\$R\b(?!\$)/.test(formula);
const valueAt = (formula, values) => evaluator([formula], Object.keys(values))(values)[0];
const limitAt = (limit, values) =>
  limit.value === null || usesRadius(limit.value) ? null : valueAt(limit.value, values);
const limitWords = (value, limit) =>
  value === null
    ? limit.words
    : value === Infinity
      ? "no limit"
      : /^[\d./]+$/.test(limit.words)
        ? limit.words
        : `${shown(value)} = ${limit.words}`;

function boundedStep(limit, settings, values, model) {
  const value = limitAt(limit, values);
  const bound = `${shown(settings.step)} <= ${limitWords(value, limit)}`;
  const base = {topic: "step", reason: limit.means, proved: true};
  if (value !== null && settings.step > value)
    return {
      ...base,
      status: "problem",
      text: `the step ${shown(settings.step)} exceeds the limit ${limitWords(value, limit)} of ${settings.method}`,
    };
  if (limit.keeps !== "box") return {...base, status: value === null ? "if" : "ok", text: `step ${bound}`};
  const isStated = model.bundle.existence[settings.normalisation].find?.((f) => f.status === "if") !== undefined;
  const box = withNumbers(/\[.*\]/.exec(limit.means)?.[0] ?? "the box", values);
  return {...base, status: "if", text: isStated ? `step ${bound}` : `H0 lies in ${box} and step ${bound}`};
}

// A limit for states that are the same in all nodes: a condition on the run, and on the graph.
function equalStep(limit, settings, values) {
  const value = limitAt(limit, values);
  const base = {topic: "step", reason: limit.means, proved: true};
  const step = shown(settings.step);
  if (value !== null && settings.step > value)
    return {
      ...base,
      status: "unknown",
      text: `the step ${step} exceeds the limit ${limitWords(value, limit)} of ${settings.method}`,
    };
  const far = limit.means.includes("|h| <= R") ? " and |h| <= R" : "";
  const nearby = `as long as states are nearly the same in all nodes${far}`;
  const assumed = limit.assumes ? `, where ${limit.assumes}` : "";
  return {...base, status: "if", text: `step ${step} <= ${limitWords(value, limit)} ${nearby}${assumed}`};
}

// The largest R up to which a condition holds that holds for small R or for none; 0 where it holds for none.
function largestRadius(holds) {
  let [low, high] = [0, 1e-6];
  if (!holds(high)) return 0;
  while (high < 1e9 && holds(high)) [low, high] = [high, 2 * high];
  for (let k = 0; k < 60; k++) {
    const middle = (low + high) / 2;
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return high >= 1e9 ? Infinity : low;
}

function slopeStep(limit, settings, values) {
  const value = limitAt(limit, values);
  const base = {topic: "step", reason: limit.means, proved: true};
  if (value !== null && settings.step > value)
    return {
      ...base,
      status: limit.sharp ? "problem" : "unknown",
      text: `the step ${shown(settings.step)} exceeds the limit ${limitWords(value, limit)} of ${settings.method}`,
    };
  if (limit.rate !== null && !(!usesRadius(limit.rate) && valueAt(limit.rate, values) <= 0))
    return {
      ...base,
      status: "unknown",
      text: `the step limit bounds how fast errors grow; ${settings.method} may still amplify what the flow damps`,
    };
  if (value === null) {
    const radius = largestRadius((R) => settings.step <= valueAt(limit.value, {...values, R}));
    if (radius === 0)
      return {
        ...base,
        status: "unknown",
        text: `the step ${shown(settings.step)} exceeds the limit of ${settings.method} for states of every size`,
      };
    return {
      ...base,
      status: "if",
      text: `step ${shown(settings.step)} <= ${limit.words} as long as |h| <= R = ${shown(radius)}`,
    };
  }
  const far = limit.means.includes("|h| <= R");
  return {
    ...base,
    status: far ? "if" : "ok",
    text: `step ${shown(settings.step)} <= ${limitWords(value, limit)}${far ? " as long as |h| <= R" : ""}`,
  };
}

// Several fields: a step that resolves the fastest rate K.
function fieldsStep(steps, settings, values) {
  const base = {
    topic: "step",
    reason: `K = ${steps.words} bounds the rates of the field; a step that resolves them need not damp`,
    proved: true,
  };
  if (usesRadius(steps.rate)) {
    const radius = largestRadius((R) => settings.step * valueAt(steps.rate, {...values, R}) <= 1);
    if (radius === 0)
      return {
        ...base,
        status: "unknown",
        text:
          `the step ${shown(settings.step)} is larger than any step that can be proved safe: ` +
          "the bound K of the rates grows with the state",
      };
    const size = `no entry of the states exceeds ${shown(radius)} in size`;
    return {...base, status: "if", text: `step ${shown(settings.step)} <= 1/K as long as ${size}`};
  }
  const rate = valueAt(steps.rate, values);
  if (settings.step * rate <= 1)
    return {...base, status: "ok", text: `step ${shown(settings.step)} <= 1/K = ${shown(1 / rate)}`};
  return {...base, status: "unknown", text: `step ${shown(settings.step)} exceeds 1/K = ${shown(1 / rate)}`};
}

// Modes that the flow damps at the state shown, and that the method amplifies.
function linearisedFindings(model, settings, modes) {
  if (!modes)
    return [
      {
        topic: "step",
        status: "unknown",
        text: `no step limit for ${settings.method} is known`,
        reason: model.noModes,
        proved: false,
      },
    ];
  const where = isLinear(model) ? "" : " at the steady state";
  let worst = 0;
  for (const lam of FREQUENCIES)
    for (const mu of eigenvalues(modes.matrixAt(lam)))
      if (mu[0] <= 0)
        worst = Math.max(
          worst,
          stabilityAt(
            METHODS[settings.method].stability,
            mu.map((x) => x * settings.step),
          ),
        );
  const base = {topic: where ? "step, linearised" : "step", reason: IN_PAGE, proved: false};
  if (worst > 1 + 1e-9)
    return [
      {
        ...base,
        status: "problem",
        text:
          `${settings.method} with step ${shown(settings.step)} multiplies a mode that the flow damps by ` +
          `${shown(worst)} in every step${where}`,
      },
    ];
  return [
    {
      ...base,
      status: where ? "info" : "ok",
      text: `every mode that the flow damps is damped by ${settings.method}${where}`,
    },
  ];
}

function stabilityAt(coefficients, [x, y]) {
  let [a, b] = [0, 0];
  for (const c of coefficients) [a, b] = [a * x - b * y + c, a * y + b * x];
  return Math.hypot(a, b);
}

// ------------------------------------------------------------------ growth and fidelity
function growthFindings(model, settings, modes) {
  const proved = hasAnswer(model.bundle?.growth);
  if (!proved && !(modes && isLinear(model))) return [];
  const rate = proved ? valueAt(model.bundle.growth.rate, settings.coefficients) : Math.max(...modes.growth);
  const base = {topic: "growth", reason: proved ? `at the rate ${model.bundle.growth.words}` : IN_PAGE, proved};
  if (rate <= (proved ? 0 : 1e-9))
    return [{...base, status: model.fields.length > 1 ? "info" : "ok", text: "no frequency grows"}];
  const factor = Math.exp(settings.T * rate);
  return [
    {
      ...base,
      status: factor > MAX_AMPLIFICATION ? "problem" : "info",
      text: `the fastest frequency grows by exp(T p) = ${shown(factor)}`,
    },
  ];
}

function fidelityFindings(model, settings, responses) {
  if (!responses || model.fields.length > 1 || !isLinear(model) || !(settings.T > 0)) return [];
  const scale = Math.max(...responses.exact.map(Math.abs));
  let [gap, at] = [0, 0];
  responses.exact.forEach((x, k) => {
    const d = Math.abs(responses.computed[k] - x);
    if (!(d <= gap)) [gap, at] = [Number.isFinite(d) ? d : Infinity, FREQUENCIES[k]];
  });
  const error = gap / scale;
  return [
    {
      topic: "fidelity",
      status: error <= MAX_RELATIVE_ERROR ? "ok" : "problem",
      proved: false,
      text: `the error of ${settings.method} is ${shown(error)} times the largest exact gain (at λ = ${shown(at)})`,
      reason: "sampled at 201 frequencies",
    },
  ];
}
