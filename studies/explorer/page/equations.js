// Reads the lines of a text and the declarations after `where`: fields, kinds of names, functions.

const LEFT = /^\s*(?:([A-Za-z_]\w*)\s*('+)|d([A-Za-z_]\w*)\s*\/\s*dt)\s*=(?!=)/;
const BREAK = /;|\n(?=[^\S\n]*(?:[A-Za-z_]\w*[^\S\n]*'+|d[A-Za-z_]\w*[^\S\n]*\/[^\S\n]*dt)[^\S\n]*=(?!=))/g;

function pieces(text) {
  const breaks = [...text.matchAll(BREAK)];
  const starts = [0, ...breaks.map((b) => b.index + b[0].length)];
  const stops = [...breaks.map((b) => b.index), text.length];
  const kept = starts
    .map((start, k) => [start, stops[k]])
    .filter(([start, stop], k) => breaks[k]?.[0] === ";" || text.slice(start, stop).trim());
  return kept.length ? kept : [[0, text.length]];
}

function readLine(text, start, stop, isOneOfMany) {
  const left = LEFT.exec(text.slice(start, stop));
  const body = left ? start + left[0].length : start;
  const where = /\bwhere\b/.exec(text.slice(body, stop));
  const end = where ? body + where.index : stop;
  const clause = where ? [end + where[0].length, stop] : null;
  if (!left) {
    if (isOneOfMany || /(?<![<>=!])=(?!=)/.test(text.slice(start, end))) {
      throw new LanguageError(
        start,
        "a field with ' before the =, as in u' = ...",
        text.slice(start, end).trim().slice(0, 40) || "nothing",
        "a right-hand side alone is that of H'",
      );
    }
    return {field: "H", order: 1, body, end, clause, named: false};
  }
  const order = left[2] ? left[2].length : 1;
  if (order > 2)
    throw new LanguageError(start, "a first or a second derivative", left[0].trim(), "add a field for the others");
  return {field: left[1] ?? left[3], order, body, end, clause, named: true};
}

function readLines(text) {
  const found = pieces(text);
  if (found.length > LANGUAGE.limits.equations)
    throw new LanguageError(
      found[LANGUAGE.limits.equations][0],
      `at most ${LANGUAGE.limits.equations} equations`,
      "more",
      "use fewer fields",
    );
  const lines = found.map(([start, stop]) => readLine(text, start, stop, found.length > 1));
  const seen = new Set();
  for (const line of lines) {
    const name = line.field;
    const taken =
      Object.hasOwn(LANGUAGE.reserved, name) ||
      (isStructural(name) && name !== "H") ||
      LANGUAGE.functions.includes(name);
    if (
      taken ||
      name.endsWith("0") ||
      KEYWORDS.has(name) ||
      name.startsWith("_") ||
      name.length > LANGUAGE.limits.name
    ) {
      throw new LanguageError(line.body, "a free name for a field", `'${name}'`, "call it u, v or w");
    }
    if (seen.has(name))
      throw new LanguageError(
        line.body,
        `one equation for ${name}`,
        "a second one",
        "drop one of them, or name another field",
      );
    seen.add(name);
  }
  return lines;
}

// ------------------------------------------------------------------ declarations
function readClause(text, [start, stop], declared) {
  if (stop - start > LANGUAGE.limits.length)
    throw new LanguageError(
      start,
      `at most ${LANGUAGE.limits.length} characters after 'where'`,
      stop - start,
      "say less",
    );
  let at = start;
  for (const item of text.slice(start, stop).split(",")) {
    const words = item.trim().split(/\s+/).filter(Boolean);
    const definition = /^\s*([A-Za-z_]\w*)\s*=(?!=)/.exec(item);
    if (definition)
      declared.functions.push({
        name: definition[1],
        at,
        body: item.slice(definition[0].length),
        place: at + definition[0].length,
      });
    else if (words.length === 2 && LANGUAGE.kinds.includes(words[1])) declareKind(words, at, declared);
    else if (words.length >= 2 && words.slice(1).every((word) => LANGUAGE.operator_words.includes(word)))
      declareOperator(words, at, declared);
    else if ((words.length === 2 && LANGUAGE.sign_words.includes(words[1])) || /[<>]/.test(item))
      declared.assumed.push({text: item.trim(), at});
    else
      throw new LanguageError(
        at,
        "declarations after 'where', as in 'beta channel, beta < 0, g = H**2'",
        item.trim().slice(0, 40) || "nothing",
        "separate declarations by commas",
      );
    at += item.length + 1;
  }
}

function declareKind([name, kind], at, declared) {
  checkNewName(name, at);
  if ((declared.kinds.get(name) ?? kind) !== kind)
    throw new LanguageError(at, `one kind for ${name}`, "two", "drop one of them");
  declared.kinds.set(name, kind);
}

function declareOperator([name, ...words], at, declared) {
  if (LANGUAGE.structural[name] !== "matrix") checkNewName(name, at);
  const all = new Set([...(declared.operators.get(name) ?? []), ...words]);
  for (const [one, other] of LANGUAGE.exclusive) {
    if (all.has(one) && all.has(other))
      throw new LanguageError(at, `${name} to be ${one} or ${other}`, "both", "drop one of them");
  }
  declared.operators.set(name, all);
}

// `W symmetric` is about a matrix; the runs of the page need nothing of it.
function dropSymmetricMatrices(declared) {
  for (const [name, words] of declared.operators) {
    if ((declared.kinds.get(name) ?? LANGUAGE.structural[name]) !== "matrix") continue;
    if ([...words].join() !== "symmetric")
      throw new LanguageError(0, "symmetric, all that can be declared of a matrix", [...words].join(" "), "drop it");
    declared.operators.delete(name);
  }
}

function readFunctions(declared, kinds, states) {
  const names = declared.functions.map((f) => f.name);
  const taken = new Set([...vocabulary(kinds, names).kinds.keys(), ...states]);
  const fields = states.flatMap((state) => [state, startOf(state)]).filter((name) => name !== "H" && name !== "H0");
  const functions = new Map();
  declared.functions.forEach(({name, at, body, place}, index) => {
    checkNewName(name, at);
    if (taken.has(name) || functions.has(name))
      throw new LanguageError(at, "a free name", `'${name}'`, `call it ${name}_1`);
    for (const [, called] of body.matchAll(/\b([A-Za-z_]\w*)\s*\(/g)) {
      if (names.slice(index).includes(called))
        throw new LanguageError(
          place,
          "definitions that call only those before them",
          called,
          `declare ${called} before ${name}`,
        );
    }
    for (const [word] of body.matchAll(/[A-Za-z_]\w*'?/g)) {
      if (fields.includes(word))
        throw new LanguageError(place, "a function of H alone", `the field ${word}`, "write H for the argument");
    }
    const words = vocabulary(kinds, [...functions.keys()]);
    for (const letter of LANGUAGE.giving_way)
      if (names.includes(letter) && !kinds.has(letter)) words.kinds.delete(letter);
    const tree = readExpression(body, words, place);
    const others = [...namesIn(tree).keys()].filter((letter) => isStructural(letter) && letter !== "H");
    if (hasApply(tree) || others.length || tree.kind !== "field")
      throw new LanguageError(
        place,
        `a function of H alone, as in ${name} = H**3/(1 + H**2)`,
        body.trim(),
        "use H, numbers, coefficients and functions",
      );
    functions.set(name, tree);
  });
  return functions;
}

function size(tree) {
  return 1 + parts(tree).reduce((total, part) => total + size(part), 0);
}

function unfolded(tree, functions, place) {
  const put = (node, argument) =>
    node.type === "name" && node.name === "H" ? argument : rebuilt(node, (part) => put(part, argument));
  const open = (node) => {
    const made = rebuilt(node, open);
    const whole =
      node.type === "call" && functions.has(node.name) ? put(open(functions.get(node.name)), made.argument) : made;
    if (size(whole) > LANGUAGE.limits.length)
      throw new LanguageError(
        place,
        `at most ${LANGUAGE.limits.length} parts with functions written out`,
        "more",
        "nest the functions less",
      );
    return whole;
  };
  return functions.size ? open(tree) : tree;
}

// White noise is a factor of a term, once.
function checkNoise(tree, place) {
  const noisy = (node) => namesIn(node).has("xi");
  const isFactor = (node) => {
    if (node.type === "name") return true;
    if (node.type === "negative") return isFactor(node.inner);
    if (node.type === "times")
      return noisy(node.left) !== noisy(node.right) && isFactor(noisy(node.left) ? node.left : node.right);
    return node.type === "over" && !noisy(node.right) && isFactor(node.left);
  };
  const terms = (node) =>
    ["plus", "minus"].includes(node.type)
      ? [...terms(node.left), ...terms(node.right)]
      : node.type === "negative"
        ? terms(node.inner)
        : [node];
  for (const term of terms(tree)) {
    if (noisy(term) && !isFactor(term))
      throw new LanguageError(
        place,
        "white noise as a factor of a term, as in sigma*xi",
        "something else",
        "write the noise last: ... + sigma*xi",
      );
  }
}

const ALLOWED = {real: "+0-", positive: "+", negative: "-", nonnegative: "+0", nonpositive: "0-"};
const SIGN_OF = {"<": "negative", "<=": "nonpositive", ">": "positive", ">=": "nonnegative"};
const FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="};

function readAssumptions(declared, kinds) {
  const words = vocabulary(kinds);
  const signs = new Map();
  const add = (name, sign, at) => {
    const common = [...ALLOWED[sign]].filter((c) => ALLOWED[signs.get(name) ?? "real"].includes(c)).join("");
    const word = Object.keys(ALLOWED).find((w) => ALLOWED[w] === common);
    if (!word)
      throw new LanguageError(at, `one sign for ${name}`, `${signs.get(name)} and ${sign}`, "drop one of them");
    signs.set(name, word);
  };
  const isZero = (tree) => tree.type === "number" && tree.value === 0;
  for (const {text, at} of declared.assumed) {
    const [name, word, more] = text.split(/\s+/);
    if (!more && LANGUAGE.sign_words.includes(word)) {
      if (!["scalar", "channel", "node"].includes(words.kinds.get(name)) || Object.hasOwn(LANGUAGE.drivers, name))
        throw new LanguageError(at, "a coefficient", `'${name}'`, "declare it first or check the spelling");
      add(name, word, at);
      continue;
    }
    const sides = text.split(/<=|>=|<|>/).map((side) => readExpression(side, words, at));
    const relations = text.match(/<=|>=|<|>/g) ?? [];
    for (const side of sides) {
      const driven = [...namesIn(side).keys()].some((letter) => Object.hasOwn(LANGUAGE.drivers, letter));
      if (driven || !["scalar", "channel", "node"].includes(side.kind))
        throw new LanguageError(at, `coefficients and numbers in '${text}'`, side.kind, "compare coefficients");
    }
    relations.forEach((relation, k) => {
      const [lower, sign, upper] = isZero(sides[k])
        ? [sides[k + 1], FLIPPED[relation], sides[k]]
        : [sides[k], relation, sides[k + 1]];
      if (isZero(upper) && lower.type === "name") add(lower.name, SIGN_OF[sign], at);
    });
  }
  return signs;
}

// ------------------------------------------------------------------ the whole text
// A system is {fields, flow: trees by state, coefficients: {name: {kind, sign}}, kinds, lines: [{left, tree}]}.
function readSystem(text) {
  const lines = readLines(text);
  const declared = {kinds: new Map(), operators: new Map(), assumed: [], functions: []};
  for (const line of lines) if (line.clause) readClause(text, line.clause, declared);
  dropSymmetricMatrices(declared);
  const states = lines.flatMap((line) => (line.order === 2 ? [line.field, `${line.field}'`] : [line.field]));
  const isPlain = lines.length === 1 && states.length === 1 && states[0] === "H";
  const taken = new Set(states.flatMap((state) => [state, startOf(state)]));
  for (const name of [...declared.kinds.keys(), ...declared.operators.keys()]) {
    const both = declared.kinds.has(name) && declared.operators.has(name);
    if (taken.has(name) || both) throw new LanguageError(0, `'${name}' as one thing`, "two", "give it another name");
  }
  const kinds = new Map([...declared.kinds, ...[...declared.operators.keys()].map((name) => [name, "operator"])]);
  const functions = readFunctions(declared, kinds, states);
  const words = vocabulary(kinds, [...functions.keys()], isPlain ? null : states);
  const read = lines.map((line) => readEquation(text, line, words, functions));
  if (read.every(({tree}) => tree.kind !== "field"))
    throw new LanguageError(
      lines[0].body,
      "a field: an expression in the state",
      `a ${read[0].tree.kind}`,
      "apply it to the state, as in A@H",
    );
  const known = new Map([
    ...LANGUAGE.usual.map((name) => [name, "scalar"]),
    ...(isPlain
      ? []
      : [
          ...LANGUAGE.usual_of_fields.map((name) => [name, "scalar"]),
          ...states.filter((s) => !s.endsWith("'")).flatMap((s) => [`D${s}`, `D_${s}`].map((name) => [name, "scalar"])),
        ]),
    ...kinds,
    ...states.map((state) => [state, "field"]),
  ]);
  const signs = readAssumptions(declared, known);
  return assembled(text, read, states, signs, declared.operators);
}

function readEquation(text, line, words, functions) {
  const written = readExpression(text.slice(line.body, line.end), words, line.body);
  const tree = unfolded(written, functions, line.body);
  if (!ELEMENTWISE.has(tree.kind))
    throw new LanguageError(
      line.body,
      `a field: an expression in ${line.field}`,
      tree.kind,
      `apply it to the state, as in A@${line.field}`,
    );
  checkNoise(tree, line.body);
  return {field: line.field, order: line.order, written, tree};
}

function assembled(text, read, states, signs, operators) {
  const flow = new Map();
  for (const {field, order, tree} of read) {
    if (order === 2) flow.set(field, {type: "name", name: `${field}'`, kind: "field"});
    flow.set(order === 2 ? `${field}'` : field, tree);
  }
  const kinds = new Map();
  read.forEach(({tree}) => namesIn(tree, kinds));
  const coefficients = {};
  for (const name of [...kinds.keys()].sort()) {
    const kind = kinds.get(name);
    if (LANGUAGE.kinds.includes(kind) && !isStructural(name))
      coefficients[name] = {kind, sign: signs.get(name) ?? "positive"};
  }
  const further = [...operators.keys()].filter((name) => kinds.has(name));
  return {text, fields: states, flow, coefficients, kinds, lines: read, further};
}
