// From trees to numbers: plans of products and formulas, functions made of formulas, and modes by dual numbers.
// Formulas are JavaScript, printed by Python or here from a tree; names in them start with $.

const letterOf = (name) => `$${name.replace(/'/g, "$")}`;
const FUNCTIONS = Object.fromEntries(
  Object.entries(LANGUAGE.function_bodies).map(([name, body]) => [`f_${name}`, new Function("x", `return ${body};`)]),
);
const FUNCTION_NAMES = Object.keys(FUNCTIONS);
const FUNCTION_VALUES = Object.values(FUNCTIONS);

// The function that evaluates formulas at an object of values, {alpha: 1, lam: 0.5}; compiled once for each list.
const compiled = new Map();
function evaluator(formulas, names) {
  const key = `${formulas.join("\n")}\n${names.join()}`;
  if (!compiled.has(key)) {
    const body = `const [${names.map(letterOf).join(", ")}] = values; return [${formulas.join(", ")}];`;
    const inner = new Function(...FUNCTION_NAMES, "values", body).bind(null, ...FUNCTION_VALUES);
    compiled.set(key, (values) => inner(names.map((name) => values[name])));
  }
  return compiled.get(key);
}

const SLOPES = Object.fromEntries(
  Object.entries(LANGUAGE.function_slopes).map(([name, body]) => [
    name, new Function(...FUNCTION_NAMES, "x", `return ${body};`).bind(null, ...FUNCTION_VALUES),
  ]),
);

function slopeOf(name, x) {
  if (SLOPES[name]) return SLOPES[name](x);
  const f = FUNCTIONS[`f_${name}`];
  const step = 1e-6 * Math.max(1, Math.abs(x));
  return (f(x + step) - f(x - step)) / (2 * step);
}

// ------------------------------------------------------------------ plans
// {steps: [{into, of, product}], rates}: `of` is a formula in states, coefficients and results of earlier steps.
class Planner {
  constructor() {
    Object.assign(this, {steps: [], known: new Map()});
  }

  letter(of, product) {
    const key = `${product}:${of}`;
    if (!this.known.has(key)) {
      this.known.set(key, `$_${this.steps.length}`);
      this.steps.push({into: this.known.get(key), of, product});
    }
    return this.known.get(key);
  }

  formula(tree) {
    switch (tree.type) {
      case "number":
        return String(tree.value);
      case "name":
        return tree.name === "xi" ? "0" : letterOf(tree.name);
      case "plus":
        return `(${this.formula(tree.left)} + ${this.formula(tree.right)})`;
      case "minus":
        return `(${this.formula(tree.left)} - ${this.formula(tree.right)})`;
      case "times":
        return `(${this.formula(tree.left)}*${this.formula(tree.right)})`;
      case "over":
        return `(${this.formula(tree.left)}/${this.formula(tree.right)})`;
      case "negative":
        return `(-${this.formula(tree.inner)})`;
      case "power":
        return powerText(this.formula(tree.base), tree.exponent);
      case "call":
        return `f_${tree.name}(${this.formula(tree.argument)})`;
      default: // an operator on a field, or a mixing matrix, which is a number for one channel
        return tree.left.kind === "operator"
          ? this.applied(tree.left, this.formula(tree.right))
          : `(${this.formula(tree.left)}*${this.formula(tree.right)})`;
    }
  }

  applied(op, inner) {
    const x = /^[\w$]+$/.test(inner) ? inner : this.letter(inner, false);
    switch (op.type) {
      case "name":
        if (op.name === "I") return x;
        if (op.name === "A") return this.letter(x, true);
        if (op.name === "L") return `(${x} - ${this.letter(x, true)})`;
        throw new LanguageError(0, "an equation in A alone", `the operator ${op.name} as well`, "see it in Python");
      case "plus":
        return `(${this.applied(op.left, x)} + ${this.applied(op.right, x)})`;
      case "minus":
        return `(${this.applied(op.left, x)} - ${this.applied(op.right, x)})`;
      case "negative":
        return `(-${this.applied(op.inner, x)})`;
      case "over":
        return `(${this.applied(op.left, x)}/${this.formula(op.right)})`;
      case "times": {
        const [scalar, rest] = op.left.kind === "operator" ? [op.right, op.left] : [op.left, op.right];
        return `(${this.formula(scalar)}*${this.applied(rest, x)})`;
      }
      case "power":
        return Array.from({length: op.exponent}).reduce((value) => this.applied(op.base, value), x);
      default:
        return this.applied(op.left, this.applied(op.right, x));
    }
  }
}

function powerText(base, exponent) {
  if (exponent === 0) return "1";
  return exponent > 0 && exponent <= 3 ? `(${Array(exponent).fill(base).join("*")})` : `Math.pow(${base}, ${exponent})`;
}

function planOf(system) {
  if (system.further.length)
    throw new LanguageError(
      0,
      "an equation in A alone",
      `the operator ${system.further[0]} as well`,
      "see it in Python",
    );
  const planner = new Planner();
  const rates = system.fields.map((state) => planner.formula(system.flow.get(state)));
  return {steps: planner.steps, rates};
}

const planOfBundle = (plan) => ({
  steps: plan.products.map(({into, of}) => ({into, of, product: true})),
  rates: plan.rates,
});

// ------------------------------------------------------------------ modes by dual numbers
// On a constant state A is 1; on a small deviation along an eigenvector of L it is 1 - lam. A dual number carries both.
function dual(tree, values, slopes, lam) {
  const at = (node) => dual(node, values, slopes, lam);
  switch (tree.type) {
    case "number":
      return [tree.value, 0];
    case "name":
      return tree.name === "xi" ? [0, 0] : [values[tree.name], slopes[tree.name] ?? 0];
    case "negative": {
      const [x, dx] = at(tree.inner);
      return [-x, -dx];
    }
    case "call": {
      const [x, dx] = at(tree.argument);
      return [FUNCTIONS[`f_${tree.name}`](x), dx ? slopeOf(tree.name, x) * dx : 0];
    }
    case "power": {
      const [x, dx] = at(tree.base);
      const n = tree.exponent;
      return [x ** n, n && dx ? n * x ** (n - 1) * dx : 0];
    }
    case "apply":
      if (tree.left.kind === "operator") {
        const [x, dx] = at(tree.right);
        return [actionOf(tree.left, values, 0) * x, actionOf(tree.left, values, lam) * dx];
      }
      break;
  }
  const [[x, dx], [y, dy]] = [at(tree.left), at(tree.right)];
  switch (tree.type) {
    case "plus":
      return [x + y, dx + dy];
    case "minus":
      return [x - y, dx - dy];
    case "over":
      return [x / y, (dx * y - x * dy) / (y * y)];
    default:
      return [x * y, dx * y + x * dy];
  }
}

function actionOf(op, values, lam) {
  const number = (tree) => (tree.kind === "operator" ? actionOf(tree, values, lam) : dual(tree, values, {}, 0)[0]);
  switch (op.type) {
    case "name":
      return {I: 1, A: 1 - lam, L: lam}[op.name];
    case "plus":
      return number(op.left) + number(op.right);
    case "minus":
      return number(op.left) - number(op.right);
    case "negative":
      return -number(op.inner);
    case "over":
      return number(op.left) / number(op.right);
    case "power":
      return number(op.base) ** op.exponent;
    default:
      return number(op.left) * number(op.right);
  }
}

// Why there is no P(lam), or nothing: the reasons that the symbolic core gives, as far as they are seen in the tree.
function whyNoModes(system) {
  if (system.further.length) return `the operator ${system.further[0]} has other eigenvectors`;
  if (system.kinds.has("t")) return "it depends on the time t";
  for (const [name, kind] of system.kinds) {
    if (kind === "node") return `${name} differs between the nodes`;
    if (kind === "matrix") return `the matrix ${name} mixes channels`;
  }
  return "";
}

// {rates(values), matrix(values, lam)}, where values are those of coefficients, states and starts.
function kineticsOf(system) {
  const trees = system.fields.map((state) => system.flow.get(state));
  return {
    rates: (values) => trees.map((tree) => dual(tree, values, {}, 0)[0]),
    matrix: (values, lam) =>
      trees.map((tree) => system.fields.map((state) => dual(tree, values, {[state]: 1}, lam)[1])),
  };
}

function kineticsOfBundle(bundle, names) {
  const rates = evaluator(bundle.kinetics.rates, names);
  const matrix = evaluator(bundle.kinetics.matrix.flat(), [...names, "lam"]);
  const n = bundle.fields.length;
  return {
    rates,
    matrix: (values, lam) => {
      const flat = matrix({...values, lam});
      return bundle.fields.map((_, i) => flat.slice(i * n, (i + 1) * n));
    },
  };
}

// ------------------------------------------------------------------ canonical text, by which trees are compared
function exactText(text) {
  const [, whole, exponent] = /^([\d.]+)(?:[eE]([+-]?\d+))?$/.exec(text);
  const [before, after = ""] = whole.split(".");
  let [top, bottom] = [BigInt(before + after || "0"), 10n ** BigInt(after.length)];
  const shift = BigInt(exponent ?? 0);
  if (shift > 0n) top *= 10n ** shift;
  else bottom *= 10n ** -shift;
  let [a, b] = [top, bottom];
  while (b) [a, b] = [b, a % b];
  return bottom === a ? String(top / a) : `${top / a}/${bottom / a}`;
}

function canonical(tree) {
  switch (tree.type) {
    case "number":
      return exactText(tree.text);
    case "name":
      return `${tree.name}:${tree.kind}`;
    case "negative":
      return `(negative ${canonical(tree.inner)})`;
    case "power":
      return `(power ${canonical(tree.base)} ${tree.exponent})`;
    case "call":
      return `(call ${tree.name} ${canonical(tree.argument)})`;
    default:
      return `(${tree.type} ${canonical(tree.left)} ${canonical(tree.right)})`;
  }
}
