// Small linear algebra and the two graphs: eigenvalues of P(lam), gains of runs, operators, steps, energies.

// ------------------------------------------------------------------ matrices, as arrays of rows
const identity = (n) => Array.from({length: n}, (_, i) => Array.from({length: n}, (_, j) => Number(i === j)));
const product = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, x, k) => sum + x * b[k][j], 0)));
const scaled = (a, c) => a.map((row) => row.map((x) => c * x));
const added = (a, b) => a.map((row, i) => row.map((x, j) => x + b[i][j]));
const largest = (a) => Math.max(...a.map((row) => row.reduce((sum, x) => sum + Math.abs(x), 0)));

// The characteristic polynomial by Faddeev and LeVerrier, highest power first; its roots by Aberth's iteration.
function characteristic(matrix) {
  const n = matrix.length;
  const coefficients = [1];
  let m = identity(n);
  for (let k = 1; k <= n; k++) {
    const am = product(matrix, m);
    coefficients.push(-am.reduce((sum, row, i) => sum + row[i], 0) / k);
    m = added(am, scaled(identity(n), coefficients[k]));
  }
  return coefficients;
}

function roots(coefficients) {
  const n = coefficients.length - 1;
  const bound = 1 + Math.max(...coefficients.slice(1).map(Math.abs));
  const found = Array.from({length: n}, (_, k) => {
    const angle = (2 * Math.PI * k) / n + 0.4;
    return [0.5 * bound * Math.cos(angle), 0.5 * bound * Math.sin(angle)];
  });
  const times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c];
  const over = ([a, b], [c, d]) => {
    const s = c * c + d * d;
    return [(a * c + b * d) / s, (b * c - a * d) / s];
  };
  for (let round = 0; round < 200; round++) {
    let moved = 0;
    for (let k = 0; k < n; k++) {
      let [value, slope] = [
        [coefficients[0], 0],
        [0, 0],
      ];
      for (let i = 1; i <= n; i++) {
        slope = times(slope, found[k]).map((x, part) => x + value[part]);
        value = times(value, found[k]);
        value = [value[0] + coefficients[i], value[1]];
      }
      if (Math.hypot(...value) === 0) continue;
      const newton = over(value, slope);
      if (!newton.every(Number.isFinite)) continue;
      let sum = [0, 0];
      for (let j = 0; j < n; j++) {
        const gap = [found[k][0] - found[j][0], found[k][1] - found[j][1]];
        if (j !== k && Math.hypot(...gap) > 0) {
          const term = over([1, 0], gap);
          sum = [sum[0] + term[0], sum[1] + term[1]];
        }
      }
      const damped = times(newton, sum);
      const move = over(newton, [1 - damped[0], -damped[1]]);
      if (!move.every(Number.isFinite)) continue;
      found[k] = [found[k][0] - move[0], found[k][1] - move[1]];
      moved = Math.max(moved, Math.hypot(...move));
    }
    if (moved < 1e-14 * bound) break;
  }
  return found;
}

// Eigenvalues [real, imaginary], the one that grows fastest first; one and two fields in closed form.
function eigenvalues(matrix) {
  let found;
  if (matrix.length === 1) found = [[matrix[0][0], 0]];
  else if (matrix.length === 2) {
    const [[a, b], [c, d]] = matrix;
    const [middle, square] = [(a + d) / 2, ((a - d) / 2) ** 2 + b * c];
    const root = Math.sqrt(Math.abs(square));
    found =
      square >= 0
        ? [
            [middle + root, 0],
            [middle - root, 0],
          ]
        : [
            [middle, root],
            [middle, -root],
          ];
  } else found = roots(characteristic(matrix));
  return found.sort((x, y) => y[0] - x[0] || y[1] - x[1]);
}

// exp(matrix) by scaling and squaring of a Taylor polynomial.
function exponential(matrix) {
  const halvings = Math.max(0, Math.ceil(Math.log2(Math.max(largest(matrix), 1e-300))) + 3);
  const small = scaled(matrix, 2 ** -halvings);
  let [sum, term] = [identity(matrix.length), identity(matrix.length)];
  for (let k = 1; k <= 16; k++) {
    term = scaled(product(term, small), 1 / k);
    sum = added(sum, term);
  }
  for (let k = 0; k < halvings; k++) sum = product(sum, sum);
  return sum;
}

function polynomialAt(coefficients, matrix) {
  return coefficients.reduce(
    (sum, c) => added(product(sum, matrix), scaled(identity(matrix.length), c)),
    scaled(identity(matrix.length), 0),
  );
}

function powerOfMatrix(matrix, exponent) {
  let [result, base] = [identity(matrix.length), matrix];
  for (let n = exponent; n > 0; n = Math.floor(n / 2)) {
    if (n % 2) result = product(result, base);
    base = product(base, base);
  }
  return result;
}

// The largest singular value.
function norm(matrix) {
  const gram = product(
    matrix[0].map((_, j) => matrix.map((row) => row[j])),
    matrix,
  );
  return gram.flat().every(Number.isFinite) ? Math.sqrt(Math.max(0, eigenvalues(gram)[0][0])) : Infinity;
}

// ceil(T/step) steps, the last one shortened.
function stepsOf(T, step) {
  const full = Math.floor(T / step + 1e-9);
  const rest = T - full * step;
  return {full, rest: rest > 1e-9 * step ? rest : 0};
}

// ------------------------------------------------------------------ random numbers that Python draws as well
function makeNoise(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(1664525, state) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

// ------------------------------------------------------------------ graphs
// {nodes, act(x, y), degree, rowSum}: act writes A@x to y.
function torus(side) {
  const act = (x, y) => {
    for (let i = 0; i < side; i++) {
      const [row, above, below] = [i * side, ((i + side - 1) % side) * side, ((i + 1) % side) * side];
      y[row] = 0.25 * (x[row + side - 1] + x[row + 1] + x[above] + x[below]);
      for (let j = 1; j < side - 1; j++)
        y[row + j] = 0.25 * (x[row + j - 1] + x[row + j + 1] + x[above + j] + x[below + j]);
      y[row + side - 1] = 0.25 * (x[row + side - 2] + x[row] + x[above + side - 1] + x[below + side - 1]);
    }
  };
  return {nodes: side * side, side, act, rowSum: 1, weights: null};
}

function smallGraph({nodes, edges}, normalisation) {
  const degree = new Float64Array(nodes);
  for (const [i, j] of edges) {
    degree[i]++;
    degree[j]++;
  }
  const entries = edges
    .flatMap(([i, j]) => [
      [i, j],
      [j, i],
    ])
    .map(([i, j]) => [i, j, normalisation === "row" ? 1 / degree[i] : 1 / Math.sqrt(degree[i] * degree[j])]);
  const sums = new Float64Array(nodes);
  for (const [i, , w] of entries) sums[i] += w;
  const act = (x, y) => {
    y.fill(0);
    for (const [i, j, w] of entries) y[i] += w * x[j];
  };
  return {nodes, act, rowSum: Math.max(...sums), weights: normalisation === "row" ? degree : null, matrix: entries};
}

// <H, L H>, weighted by degrees where A is row-normalised: the Laplacian energy.
function laplacianEnergy(graph, x, work) {
  graph.act(x, work);
  let sum = 0;
  for (let i = 0; i < graph.nodes; i++) sum += (graph.weights ? graph.weights[i] : 1) * x[i] * (x[i] - work[i]);
  return Math.max(0, sum);
}

// Eigenvalues of L of a small graph, by Jacobi's rotations of the symmetric form (row and symmetric share them).
function spectrumOf({nodes, edges}) {
  const a = identity(nodes);
  const degree = new Float64Array(nodes);
  for (const [i, j] of edges) {
    degree[i]++;
    degree[j]++;
  }
  for (const [i, j] of edges) {
    a[i][j] -= 1 / Math.sqrt(degree[i] * degree[j]);
    a[j][i] = a[i][j];
  }
  for (let sweep = 0; sweep < 30; sweep++) {
    let off = 0;
    for (let p = 0; p < nodes; p++)
      for (let q = p + 1; q < nodes; q++) {
        if (Math.abs(a[p][q]) < 1e-14) continue;
        off += a[p][q] ** 2;
        const angle = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const t = Math.sign(angle || 1) / (Math.abs(angle) + Math.hypot(angle, 1));
        const [c, s] = [1 / Math.hypot(t, 1), t / Math.hypot(t, 1)];
        for (let k = 0; k < nodes; k++) {
          const [x, y] = [a[k][p], a[k][q]];
          a[k][p] = c * x - s * y;
          a[k][q] = s * x + c * y;
        }
        for (let k = 0; k < nodes; k++) {
          const [x, y] = [a[p][k], a[q][k]];
          a[p][k] = c * x - s * y;
          a[q][k] = s * x + c * y;
        }
      }
    if (off < 1e-20) break;
  }
  return a.map((row, i) => row[i]).sort((x, y) => x - y);
}

// ------------------------------------------------------------------ steps
// field(t, states, rates): all arrays; `fixed` are the starts and masks by letter, `coefficients` numbers by name.
function makeField(plan, fields, graph, coefficients, fixed) {
  const names = Object.keys(coefficients);
  const held = Object.keys(fixed);
  const passes = [];
  const work = plan.steps.map(() => new Float64Array(graph.nodes));
  const intos = plan.steps.map((step) => step.into);
  // One pass over the nodes for several formulas, each with an array that it is written to.
  const loop = (targets) => {
    const used = new Set(targets.flatMap(([, formula]) => formula.match(/\$[\w$]*/g) ?? []));
    const read = [
      ...fields.map((f, k) => [letterOf(f), `states[${k}]`]),
      ...held.map((h) => [letterOf(h), `fixed[${JSON.stringify(h)}]`]),
      ...intos.map((into, k) => [into, `work[${k}]`]),
    ].filter(([name]) => used.has(name));
    const arrays = [
      ...read.map(([name, from]) => `const a${name} = ${from};`),
      ...targets.map(([target], k) => `const into${k} = ${target};`),
    ].join(" ");
    const values = read.map(([name]) => `const ${name} = a${name}[i];`).join(" ");
    const results = targets.map(([, formula], k) => `into${k}[i] = ${formula};`).join(" ");
    return `{ ${arrays} for (let i = 0; i < nodes; i++) { ${values} ${results} } }`;
  };
  plan.steps.forEach(({of, product: isProduct}, k) => {
    const plain = fields.findIndex((f) => letterOf(f) === of);
    const earlier = intos.indexOf(of);
    if (!isProduct) passes.push(loop([[`work[${k}]`, of]]));
    else if (plain >= 0) passes.push(`act(states[${plain}], work[${k}]);`);
    else if (earlier >= 0) passes.push(`act(work[${earlier}], work[${k}]);`);
    else passes.push(loop([["scratch", of]]), `act(scratch, work[${k}]);`);
  });
  passes.push(loop(plan.rates.map((formula, k) => [`rates[${k}]`, formula])));
  const constants = names.map((name) => `const ${letterOf(name)} = ${Number(coefficients[name])};`).join(" ");
  const body = `${constants} return (t, states, rates) => { const $t = t; ${passes.join("\n")} };`;
  const make = new Function(...FUNCTION_NAMES, "act", "work", "scratch", "fixed", "nodes", body);
  return make(...FUNCTION_VALUES, graph.act, work, new Float64Array(graph.nodes), fixed, graph.nodes);
}

// One step of an explicit Runge-Kutta method, in place; tableau = {rows, weights}.
function makeStepper(field, tableau, count, nodes) {
  const arrays = () => Array.from({length: count}, () => new Float64Array(nodes));
  const slopes = tableau.weights.map(arrays);
  const inner = arrays();
  const times = tableau.rows.map((row) => row.reduce((sum, x) => sum + x, 0));
  const combine = (into, from, weights, step) => {
    const used = weights.map((w, k) => [w * step, k]).filter(([w]) => w);
    for (let f = 0; f < count; f++) {
      const [target, source] = [into[f], from[f]];
      if (target !== source) target.set(source);
      for (const [w, k] of used) {
        const slope = slopes[k][f];
        for (let i = 0; i < nodes; i++) target[i] += w * slope[i];
      }
    }
  };
  return (t, states, step) => {
    tableau.rows.forEach((row, stage) => {
      if (stage) combine(inner, states, row, step);
      field(t + times[stage] * step, stage ? inner : states, slopes[stage]);
    });
    combine(states, states, tableau.weights, step);
  };
}
