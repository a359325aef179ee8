// A model is what the page works with, whether Python made it (a bundle, whose answers are proved) or the page read it.

const LIMIT = 2; // lam runs over [0, 2], the spectrum of normalised graphs
const SAMPLES = 201;
const FREQUENCIES = Float64Array.from({length: SAMPLES}, (_, k) => (LIMIT * k) / (SAMPLES - 1));

const hasAnswer = (part) => part !== undefined && part !== null && part.reason === undefined;

// A mixing matrix of one channel is a number, and has a slider as the coefficients have.
const withMatrix = (coefficients, system) =>
  system.kinds.has("W") ? {...coefficients, W: {kind: "matrix", sign: "real"}} : coefficients;

function modelOfText(text) {
  const system = readSystem(text);
  const reason = whyNoModes(system);
  const kinetics = reason ? null : kineticsOf(system);
  return {
    text,
    system,
    bundle: null,
    fields: system.fields,
    coefficients: withMatrix(system.coefficients, system),
    plan: planOf(system),
    kinetics,
    noModes: reason,
    hasStart: system.fields.some((f) => system.kinds.has(startOf(f))),
    isNoisy: system.kinds.has("xi"),
  };
}

function modelOfBundle(bundle) {
  const system = readSystem(bundle.text);
  const names = [...Object.keys(bundle.coefficients), ...bundle.fields, ...bundle.fields.map(startOf)];
  return {
    text: bundle.text,
    system,
    bundle,
    fields: bundle.fields,
    coefficients: withMatrix(bundle.coefficients, system),
    plan: hasAnswer(bundle.plan) ? planOfBundle(bundle.plan) : planOf(system),
    kinetics: hasAnswer(bundle.kinetics) ? kineticsOfBundle(bundle, names) : null,
    names,
    noModes: bundle.kinetics.reason ?? "",
    hasStart: bundle.fields.some((f) => system.kinds.has(startOf(f))),
    isNoisy: bundle.noisy,
  };
}

// What is proved holds for admissible coefficients; elsewhere the page works with the text alone, and says so.
const violated = (model, coefficients) =>
  model.bundle
    ? model.bundle.assumes
        .filter(({condition}) => !evaluator([condition], Object.keys(coefficients))(coefficients)[0])
        .map(({words}) => words)
    : [];

function trusted(model, coefficients) {
  if (!violated(model, coefficients).length) return model;
  model.plain ??= modelOfText(model.text);
  return model.plain;
}

// ------------------------------------------------------------------ steady states
// [{values, words, proved}] for the coefficients: closed forms of the core where there are some, else Newton's method.
function steadyStates(model, coefficients) {
  if (!model.kinetics) return [];
  const closed = hasAnswer(model.bundle?.steady) ? model.bundle.steady.states : [];
  const names = Object.keys(coefficients);
  const found = [];
  for (const state of closed) {
    const known = Object.fromEntries(model.fields.map((f) => [startOf(f), 0]));
    const values = evaluator(state.values, [...names, ...Object.keys(known)])({...coefficients, ...known});
    const holds = evaluator(state.conditions, [...names, ...Object.keys(known)])({...coefficients, ...known}).every(
      Boolean,
    );
    if (holds && values.every(Number.isFinite))
      found.push({values, words: stateWords(model, values), formula: state.words, proved: true});
  }
  return found.length ? found : newtonStates(model, coefficients);
}

const stateWords = (model, values) => model.fields.map((f, k) => `${f} = ${shown(values[k])}`).join(", ");

// How a steady state is known, whether there are others, and what it assumes of a graph.
function stateNote(model, state) {
  if (!state?.proved) return state ? `by Newton's method: ${IN_PAGE}` : "";
  const {complete, note, assumes} = model.bundle.steady;
  return `${state.formula}; ${complete ? "all of them" : "there may be others"}: ${note}; assumes: ${assumes}`;
}

function newtonStates(model, coefficients) {
  const n = model.fields.length;
  const guesses = [0.5, 1, 0, 2, -0.5, -1, 5]
    .map((x) => Array(n).fill(x))
    .concat(
      n === 2
        ? [
            [1, 0],
            [0, 1],
            [1.2, -0.6],
            [5, 10],
            [0.2, 2],
          ]
        : [],
    );
  const found = [];
  for (const guess of guesses) {
    const point = newton(model, coefficients, guess);
    const isNew =
      point && !found.some(({values}) => values.every((x, k) => Math.abs(x - point[k]) < 1e-6 * (1 + Math.abs(x))));
    if (isNew) found.push({values: point, words: stateWords(model, point), proved: false});
  }
  return found;
}

function newton(model, coefficients, guess) {
  let x = [...guess];
  for (let round = 0; round < 60; round++) {
    const values = valuesAt(model, coefficients, x);
    const rates = model.kinetics.rates(values);
    if (!rates.every(Number.isFinite)) return null;
    const move = solved(model.kinetics.matrix(values, 0), rates);
    if (!move) return rates.every((r) => Math.abs(r) < 1e-12) ? x : null;
    x = x.map((value, k) => value - move[k]);
    if (move.every((d, k) => Math.abs(d) < 1e-13 * (1 + Math.abs(x[k])))) return x.every(Number.isFinite) ? x : null;
  }
  return null;
}

// The solution of a small linear system by elimination with pivots; null where it is singular.
function solved(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  const n = rows.length;
  for (let k = 0; k < n; k++) {
    const pivot = rows
      .slice(k)
      .reduce((best, row, i) => (Math.abs(row[k]) > Math.abs(rows[best][k]) ? i + k : best), k);
    if (!(Math.abs(rows[pivot][k]) > 1e-14)) return null;
    [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
    for (let i = 0; i < n; i++)
      if (i !== k) {
        const c = rows[i][k] / rows[k][k];
        rows[i] = rows[i].map((x, j) => x - c * rows[k][j]);
      }
  }
  return rows.map((row, i) => row[n] / row[i]);
}

// Values of coefficients, of states at a point, and of starts, which are 0 because modes do not depend on them.
function valuesAt(model, coefficients, point) {
  const values = {...coefficients};
  model.fields.forEach((f, k) => {
    values[f] = point[k];
    values[startOf(f)] = 0;
  });
  return values;
}

// ------------------------------------------------------------------ modes, responses and classes
// {matrixAt(lam), growth, frequency, at}: curves over FREQUENCIES at a state; null where there is no P(lam).
function modesOf(model, coefficients, state) {
  if (!model.kinetics) return null;
  const values = valuesAt(model, coefficients, state ? state.values : model.fields.map(() => 0));
  const matrixAt = (lam) => model.kinetics.matrix(values, lam);
  const leading = Array.from(FREQUENCIES, (lam) => eigenvalues(matrixAt(lam))[0]);
  return {matrixAt, growth: leading.map(([x]) => x), frequency: leading.map(([, y]) => Math.abs(y)), state};
}

const isLinear = (model) =>
  model.bundle ? hasAnswer(model.bundle.kinetics) && model.bundle.kinetics.linear : linearByTree(model);

function linearByTree(model) {
  if (!model.kinetics) return false;
  const degree = (tree) => {
    switch (tree.type) {
      case "number":
        return 0;
      case "name":
        return model.fields.includes(tree.name) ? 1 : 0;
      case "plus":
      case "minus":
        return Math.max(degree(tree.left), degree(tree.right));
      case "negative":
        return degree(tree.inner);
      case "power":
        return tree.kind === "operator"
          ? 0
          : tree.exponent >= 0
            ? tree.exponent * degree(tree.base)
            : degree(tree.base)
              ? Infinity
              : 0;
      case "call":
        return degree(tree.argument) ? Infinity : 0;
      case "over":
        return degree(tree.right) ? Infinity : degree(tree.left);
      default:
        return degree(tree.left) + degree(tree.right);
    }
  };
  return [...model.system.flow.values()].every((tree) => degree(tree) <= 1);
}

// Gains over FREQUENCIES: {exact, computed, words}. One linear field: formulas of the core; else norms of matrices.
// Where an equation is not linear, what grows soon leaves the neighbourhood of the state: the gain is for a short time.
function responsesOf(model, settings, modes) {
  const {full, rest, horizon} = stepsUntil(model, settings, modes);
  if (hasAnswer(model.bundle?.response)) {
    const {exact, methods} = model.bundle.response;
    const gains = evaluator(
      [exact, methods[settings.method]],
      [...Object.keys(settings.coefficients), "lam", "T", "tau", "full", "rest"],
    );
    const rows = Array.from(FREQUENCIES, (lam) =>
      gains({...settings.coefficients, lam, T: settings.T, tau: settings.step, full, rest}),
    );
    return {exact: rows.map(([x]) => x), computed: rows.map(([, y]) => y), isNorm: false, horizon};
  }
  if (!modes) return null;
  const isOne = model.fields.length === 1;
  const size = (matrix) => (isOne ? matrix[0][0] : norm(matrix));
  const stability = METHODS[settings.method].stability;
  const exact = Array.from(FREQUENCIES, (lam) => size(exponential(scaled(modes.matrixAt(lam), horizon))));
  const computed = Array.from(FREQUENCIES, (lam) => {
    const P = modes.matrixAt(lam);
    return size(
      product(
        powerOfMatrix(polynomialAt(stability, scaled(P, settings.step)), full),
        polynomialAt(stability, scaled(P, rest)),
      ),
    );
  });
  return {exact, computed, isNorm: !isOne, horizon};
}

function stepsUntil(model, settings, modes) {
  const fastest = modes && !isLinear(model) ? Math.max(...modes.growth.map(Math.abs)) : 0;
  const horizon =
    fastest > 0 ? Math.min(settings.T, settings.step * Math.ceil(4 / fastest / settings.step)) : settings.T;
  return {...stepsOf(horizon, settings.step), horizon};
}

// The class of the flow in words: {kind, words, proved}.
function filterClass(model, coefficients, modes) {
  if (hasAnswer(model.bundle?.classes)) {
    const names = Object.keys(coefficients);
    for (const one of model.bundle.classes) {
      if (evaluator([one.condition], names)(coefficients)[0]) {
        const at = one.at === null ? "" : `λ = ${shown(evaluator([one.at], names)(coefficients)[0])}`;
        return {kind: one.kind, words: at ? one.words.replace(/λ = .*$/, at) : one.words, proved: true};
      }
    }
  }
  if (!modes || model.fields.length > 1) return null;
  const slopes = [];
  const scale = Math.max(...modes.growth.map(Math.abs), 1e-300);
  for (let k = 1; k < SAMPLES; k++) {
    const sign = Math.sign(modes.growth[k] - modes.growth[k - 1]);
    if (Math.abs(modes.growth[k] - modes.growth[k - 1]) > 1e-12 * scale && sign !== slopes.at(-1)) slopes.push(sign);
  }
  const kind =
    {"": "all-pass", 1: "high-pass", "-1": "low-pass", "1,-1": "band-pass", "-1,1": "band-stop"}[slopes.join()] ??
    "multi-band";
  return {kind, words: kind, proved: false};
}

// What becomes of the steady state, from the curves alone.
const KINDS = {
  stable: "every mode decays",
  marginal: "no mode grows, and one does not decay",
  turing: "decays where all nodes agree; a stationary band grows",
  wave: "decays where all nodes agree; an oscillating band grows",
  hopf: "oscillations grow where all nodes agree",
  "unstable at 0": "grows where all nodes agree",
  "long-wave": "the constant mode stays, and a band next to λ = 0 grows",
  "anti-diffusion": "decays where all nodes agree; transport alone makes modes grow",
};

function stabilityKind({growth, frequency, matrixAt}) {
  const scale = 1e-9 * Math.max(1, ...growth.map(Math.abs));
  const top = growth.indexOf(Math.max(...growth));
  if (growth[0] > scale) return frequency[0] > scale ? "hopf" : "unstable at 0";
  if (growth[top] <= scale) return growth[top] < -scale ? "stable" : "marginal";
  if (growth[0] >= -scale) return "long-wave";
  const still = scaled(matrixAt(0), -1);
  if (growth.some((_, k) => eigenvalues(added(matrixAt((LIMIT * k) / (growth.length - 1)), still))[0][0] > scale))
    return "anti-diffusion";
  return frequency[top] > scale ? "wave" : "turing";
}

function shown(x) {
  if (!Number.isFinite(x)) return x === Infinity ? "∞" : x === -Infinity ? "-∞" : "undefined";
  const size = Math.abs(x);
  return size && (size < 1e-3 || size >= 1e5)
    ? x
        .toExponential(2)
        .replace("e+", "e")
        .replace(/\.?0+e/, "e")
    : String(Number(x.toPrecision(4)));
}
