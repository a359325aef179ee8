"use strict";
// Text to tree, by the grammar of rdgraph: expressions, their kinds, lines of equations, declarations after `where`.
// The words of the language come from Python with the page, as LANGUAGE. What is read is never evaluated as text.

class LanguageError extends Error {
  constructor(at, expected, got, remedy) {
    super(`expected ${expected}, got ${got}; ${remedy}`);
    Object.assign(this, {at, expected, got, remedy});
  }
}

const KEYWORDS = new Set(LANGUAGE.keywords);
const ELEMENTWISE = new Set(["scalar", "channel", "node", "field"]);
const isStructural = (name) => Object.hasOwn(LANGUAGE.structural, name) || Object.hasOwn(LANGUAGE.drivers, name);
const startOf = (name) => (name.endsWith("'") ? `${name.slice(0, -1)}0'` : `${name}0`);

// ------------------------------------------------------------------ names
function vocabulary(declared, functions = [], fields = null) {
  const giving = new Set(LANGUAGE.giving_way.filter((name) => functions.includes(name)));
  const kinds = new Map([...Object.entries(LANGUAGE.structural), ...Object.entries(LANGUAGE.drivers)]);
  for (const name of LANGUAGE.usual) if (!giving.has(name)) kinds.set(name, "scalar");
  if (fields) {
    kinds.delete("H");
    kinds.delete("H0");
    for (const name of LANGUAGE.usual_of_fields) kinds.set(name, "scalar");
    for (const name of fields)
      if (!name.endsWith("'")) for (const lead of ["D", "D_"]) kinds.set(lead + name, "scalar");
    for (const name of fields) for (const letter of [name, startOf(name)]) kinds.set(letter, "field");
  }
  for (const [name, kind] of declared) kinds.set(name, kind);
  return {kinds, functions: new Set([...LANGUAGE.functions, ...functions])};
}

function checkNewName(name, at) {
  const taken = Object.hasOwn(LANGUAGE.reserved, name) || isStructural(name) || LANGUAGE.functions.includes(name);
  if (taken || KEYWORDS.has(name))
    throw new LanguageError(at, "a free name", `'${name}', which is taken`, `call it ${name}_1`);
  if (!/^[A-Za-z][A-Za-z_0-9]*$/.test(name))
    throw new LanguageError(at, "letters, digits and _", `'${name}'`, "start with a letter, as in k1");
}

// ------------------------------------------------------------------ kinds
const join = (left, right) => (left === right || right === "scalar" ? left : left === "scalar" ? right : "field");

function kindOf(type, left, right) {
  const spread = ELEMENTWISE.has(left) && ELEMENTWISE.has(right);
  const pair = [left, right];
  switch (type) {
    case "plus":
    case "minus":
      if (left === right) return left;
      if (spread) return join(left, right);
      break;
    case "times":
      if (spread) return join(left, right);
      if (right === "operator" && ["scalar", "channel", "node"].includes(left)) return "operator";
      if (left === "operator" && ["scalar", "channel"].includes(right)) return "operator";
      if (pair.includes("matrix") && pair.includes("scalar")) return "matrix";
      break;
    case "over":
      if (ELEMENTWISE.has(right) && ELEMENTWISE.has(left)) return join(left, right);
      if (right === "scalar") return left;
      break;
    case "apply":
      if (left === "operator" && ["operator", "field", "node"].includes(right)) return right;
      if (right === "matrix" && (left === "field" || left === "matrix")) return left;
  }
  return null;
}

const REMEDIES = {
  plus: "apply an operator to a field first, as in A@H; write the identity as I",
  times: "operators are applied with @, as in A@H (use A@H, not A*H)",
  over: "divide by a number, a coefficient or a field",
  apply: "operators act from the left, as in A@H; use * for elementwise products",
};
REMEDIES.minus = REMEDIES.plus;

// The value of a tree of plain numbers; NaN where it has names or functions.
function numberValue(tree) {
  if (tree.type === "number") return tree.value;
  if (tree.type === "negative") return -numberValue(tree.inner);
  if (tree.type === "power") return numberValue(tree.base) ** tree.exponent;
  if (!["plus", "minus", "times", "over"].includes(tree.type)) return NaN;
  const [x, y] = [numberValue(tree.left), numberValue(tree.right)];
  if (tree.type === "times") return x * y;
  if (tree.type === "over") return x / y;
  const sum = tree.type === "plus" ? x + y : x - y;
  return Math.abs(sum) <= 1e-14 * (Math.abs(x) + Math.abs(y)) ? 0 : sum;
}

function checkDivisor(divisor, at) {
  if (numberValue(divisor) === 0)
    throw new LanguageError(at, "a divisor other than 0", "a divisor of 0", "division by zero has no value");
}

function combined(type, left, right, at) {
  if (type === "over") checkDivisor(right, at);
  const kind = kindOf(type, left.kind, right.kind);
  if (kind) return {type, left, right, kind};
  throw new LanguageError(at, "parts that go together", `${left.kind} and ${right.kind}`, REMEDIES[type]);
}

// ------------------------------------------------------------------ expressions
class ExpressionReader {
  constructor(text, words, offset = 0) {
    Object.assign(this, {text, words, offset, place: 0, tokens: []});
  }

  error(at, expected, got, remedy) {
    return new LanguageError(at + this.offset, expected, got, remedy);
  }

  read() {
    this.checkCharacters();
    this.tokenise();
    const whole = this.sum();
    const rest = this.tokens[this.place];
    if (rest?.type === "name" || rest?.type === "number" || rest?.type === "(")
      throw this.error(rest.at, "an operator between factors", `'${rest.text}'`, LANGUAGE.remedies.factors);
    if (rest) throw this.error(rest.at, "an expression", `'${rest.text}'`, LANGUAGE.remedies.syntax);
    if (whole.depth > LANGUAGE.limits.depth)
      throw this.error(0, `a tree at most ${LANGUAGE.limits.depth} deep`, "a deeper one", "group terms with brackets");
    return whole.make();
  }

  checkCharacters() {
    const {text} = this;
    if (!text.trim()) throw this.error(0, "an equation", "nothing", 'write the right-hand side, as in "-alpha*L@H"');
    let depth = 0;
    for (let at = 0; at < Math.min(text.length, LANGUAGE.limits.length + 1); at++) {
      const c = text[at];
      if (!/[A-Za-z0-9_+\-*/@(). \t\n']/.test(c)) {
        const character = String.fromCodePoint(text.codePointAt(at));
        const plain = LANGUAGE.spellings[character];
        const remedy = plain ? `write ${plain}` : LANGUAGE.character_remedies[character];
        const expected = character < "\u0080" ? "a character of the language" : "plain ASCII text";
        throw this.error(at, expected, `'${character}'`, remedy ?? LANGUAGE.remedies.character);
      }
      depth += (c === "(") - (c === ")");
      if (depth > LANGUAGE.limits.nesting)
        throw this.error(
          at,
          `at most ${LANGUAGE.limits.nesting} nested brackets`,
          "more",
          "remove superfluous brackets",
        );
    }
    if (text.length > LANGUAGE.limits.length)
      throw this.error(
        LANGUAGE.limits.length,
        `at most ${LANGUAGE.limits.length} characters`,
        text.length,
        "shorten the equation",
      );
  }

  tokenise() {
    const pattern = /([ \t\n]+)|([A-Za-z_]\w*'*)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(\*\*|\/\/|[-+*/@()])/y;
    for (let at = 0; at < this.text.length;) {
      pattern.lastIndex = at;
      const found = pattern.exec(this.text);
      if (!found) throw this.error(at, "an expression", `'${this.text[at]}'`, "check this place");
      const [text, , name, number] = found;
      const next = this.text[pattern.lastIndex] ?? "";
      if ((number && /[\w.']/.test(next)) || (name?.endsWith("'") && /\w/.test(next))) {
        throw this.error(pattern.lastIndex, "an operator", `'${next}' right after ${text}`, LANGUAGE.remedies.factors);
      }
      if (text.trim())
        this.tokens.push({text, at, end: pattern.lastIndex, type: name ? "name" : number ? "number" : text});
      at = pattern.lastIndex;
    }
  }

  next(...types) {
    const token = this.tokens[this.place];
    if (token && types.includes(token.type)) return this.tokens[this.place++];
    return null;
  }

  // A part is what a piece of text will be once it is known to be well formed: `make` gives its tree. `depth` counts as
  // Python's syntax tree does; `from` and `to` are the columns with brackets around it, `start` and `end` without.
  sum() {
    return this.chain(() => this.product(), {"+": "plus", "-": "minus"});
  }

  product() {
    return this.chain(() => this.factor(), {"*": "times", "/": "over", "@": "apply"});
  }

  chain(part, types) {
    let left = part();
    for (let sign; (sign = this.next(...Object.keys(types)));) {
      const [before, right, type] = [left, part(), types[sign.text]];
      const make = () => {
        const one = before.make();
        return combined(type, one, right.make(), sign.at + this.offset);
      };
      left = this.part(make, 1 + Math.max(before.depth, right.depth), before.from, right.to);
    }
    return left;
  }

  part(make, depth, start, end, extra = {}) {
    return {make, depth, start, end, from: start, to: end, ...extra};
  }

  factor() {
    const sign = this.next("+", "-");
    if (!sign) return this.power();
    const inner = this.factor();
    const make =
      sign.text === "+"
        ? inner.make
        : () => {
            const tree = inner.make();
            return {type: "negative", inner: tree, kind: tree.kind};
          };
    return this.part(make, 1 + inner.depth, sign.at, inner.to);
  }

  power() {
    const base = this.primary();
    const sign = this.next("**");
    if (!sign) return base;
    const right = this.factor();
    const make = () => this.powerOf(base.make(), this.text.slice(right.start, right.end), sign.at);
    return this.part(make, 1 + Math.max(base.depth, right.depth), base.from, right.to);
  }

  powerOf(base, literal, at) {
    if (!/^-?\s*\d+$/.test(literal))
      throw this.error(at + 2, "a whole number as exponent", literal, "write H**2; for roots use sqrt(H)");
    const exponent = Number(literal.replace(/\s/g, ""));
    if (Math.abs(exponent) > LANGUAGE.limits.exponent)
      throw this.error(at, `an exponent of at most ${LANGUAGE.limits.exponent}`, literal, "use a smaller power");
    if (exponent < 0) checkDivisor(base, at + this.offset);
    if (base.kind === "matrix" || (base.kind === "operator" && exponent < 0))
      throw this.error(
        at,
        "a field, a coefficient, or an operator with a power >= 0",
        base.kind,
        "matrices and inverses have no powers here",
      );
    return {type: "power", base, exponent, kind: base.kind};
  }

  primary() {
    let atom = this.atom();
    for (let open; (open = this.next("("));) {
      const outer = atom;
      const inner = this.tokens[this.place]?.type === ")" ? null : this.sum();
      const close = this.next(")");
      if (!close)
        throw this.error(
          this.tokens[this.place]?.at ?? this.text.length,
          "a closing bracket",
          "none",
          "close the bracket",
        );
      const make = () => this.call(outer, inner, open.at);
      atom = this.part(make, 1 + Math.max(outer.depth, inner?.depth ?? 0), outer.from, close.end);
    }
    return atom;
  }

  call(outer, inner, at) {
    if (!this.words.functions.has(outer.name ?? ""))
      throw this.error(at, "a known function", `'${outer.name ?? "an expression"}'`, this.functionRemedy(outer.name));
    if (!inner) throw this.error(at, `${outer.name}(expression)`, "0 arguments", "give exactly one expression");
    const argument = inner.make();
    if (!ELEMENTWISE.has(argument.kind))
      throw this.error(
        at,
        `a field or coefficient inside ${outer.name}(...)`,
        argument.kind,
        `functions act elementwise: write ${outer.name}(A@H)`,
      );
    return {type: "call", name: outer.name, argument, kind: argument.kind};
  }

  functionRemedy(name) {
    if (!name) return LANGUAGE.remedies.factors;
    if (this.words.kinds.has(name)) return `${name} is not a function; write ${name}*( ... ) or ${name}@( ... )`;
    return `known functions: ${[...this.words.functions].join(", ")}`;
  }

  atom() {
    const token = this.next("name", "number", "(");
    if (!token) {
      const got = this.tokens[this.place];
      throw this.error(
        got?.at ?? this.text.length,
        "an expression",
        got ? `'${got.text}'` : "the end",
        "check brackets and operators near the mark",
      );
    }
    if (token.type === "name") return this.part(() => this.letter(token), 2, token.at, token.end, {name: token.text});
    if (token.type === "number")
      return this.part(() => this.number(token), this.checkedLiteral(token), token.at, token.end);
    const inner = this.sum();
    const close = this.next(")");
    if (!close) throw this.error(token.at, "a closing bracket", "none", "close the bracket");
    return {...inner, from: token.at, to: close.end};
  }

  checkedLiteral(token) {
    if (/^0+[1-9]\d*$/.test(token.text))
      throw this.error(token.at, "a decimal number", token.text, "write it without leading zeros");
    return 1;
  }

  number(token) {
    const [, digits, exponent] = /^([\d.]+)(?:[eE]([+-]?\d+))?$/.exec(token.text);
    if (
      digits.replace(".", "").replace(/^0/, "").length > LANGUAGE.limits.digits ||
      Math.abs(Number(exponent ?? 0)) > LANGUAGE.limits.decimal_exponent
    ) {
      throw this.error(
        token.at,
        `at most ${LANGUAGE.limits.digits} digits, exponent ${LANGUAGE.limits.decimal_exponent}`,
        token.text,
        "name the constant",
      );
    }
    return {type: "number", text: token.text, value: Number(token.text), kind: "scalar"};
  }

  letter(token) {
    const kind = this.words.kinds.get(token.text);
    if (kind) return {type: "name", name: token.text, kind};
    if (KEYWORDS.has(token.text)) {
      const remedy = LANGUAGE.remedies.keyword.replaceAll("{name}", token.text);
      throw this.error(token.at, "an expression", `'${token.text}'`, remedy);
    }
    const known = this.words.functions.has(token.text);
    const remedy = known ? `write ${token.text}(H)` : `declare it: ... where ${token.text.replace(/'/g, "")} scalar`;
    throw this.error(token.at, known ? `${token.text}(...)` : "a known name", `'${token.text}'`, remedy);
  }
}

const readExpression = (text, words, offset = 0) => new ExpressionReader(text, words, offset).read();

// ------------------------------------------------------------------ walks over trees
const parts = (tree) => [tree.left, tree.right, tree.inner, tree.base, tree.argument].filter(Boolean);

function namesIn(tree, found = new Map()) {
  if (tree.type === "name") found.set(tree.name, tree.kind);
  parts(tree).forEach((part) => namesIn(part, found));
  return found;
}

function rebuilt(tree, change) {
  const made = {...tree};
  for (const key of ["left", "right", "inner", "base", "argument"]) if (tree[key]) made[key] = change(tree[key]);
  return made;
}

const hasApply = (tree) => tree.type === "apply" || parts(tree).some(hasApply);
