// Trees as MathML, term by term as they were written.

const GREEK = {
  alpha: "α",
  beta: "β",
  gamma: "γ",
  delta: "δ",
  epsilon: "ε",
  kappa: "κ",
  mu: "μ",
  nu: "ν",
  eta: "η",
  theta: "θ",
  rho: "ρ",
  sigma: "σ",
  omega: "ω",
  xi: "ξ",
  lam: "λ",
  tau: "τ",
};
const LEVEL = {plus: 1, minus: 1, times: 2, over: 2, apply: 2, negative: 3, power: 4};
const levelOf = (tree) => LEVEL[tree.type] ?? 5;
const escaped = (text) => text.replace(/[&<>]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;"})[c]);

function nameMath(name, kind) {
  const base = name.replace(/'/g, "");
  const isStart = kind === "field" && base.length > 1 && base.endsWith("0");
  const [, stem, index] = /^(D)_?([A-Za-z])$/.exec(base) ??
    /^([A-Za-z]+)_?(\d+)$/.exec(isStart ? base.slice(0, -1) : base) ?? [null, isStart ? base.slice(0, -1) : base, ""];
  const letter = GREEK[stem] ?? stem;
  const bold = ["field", "operator", "matrix"].includes(kind);
  const style = bold ? ' class="bold" mathvariant="normal"' : letter.length > 1 ? ' mathvariant="normal"' : "";
  let math = `<mi${style}>${escaped(letter)}</mi>`;
  if (index) math = `<msub>${math}<mi>${index}</mi></msub>`;
  if (name.endsWith("'")) math = `<mover>${math}<mo>˙</mo></mover>`;
  return isStart ? `<mrow>${math}<mo>(</mo><mn>0</mn><mo>)</mo></mrow>` : math;
}

const row = (...parts) => `<mrow>${parts.join("")}</mrow>`;
const powered = (base, exponent) => `<msup>${base}<mn>${exponent}</mn></msup>`;
const brackets = (tree) => row("<mo>(</mo>", math(tree), "<mo>)</mo>");

function math(tree) {
  const inBrackets = (part, level) =>
    levelOf(part) >= level || part.type === "over" || part.type === "call" ? math(part) : brackets(part);
  switch (tree.type) {
    case "number":
      return `<mn>${escaped(tree.text)}</mn>`;
    case "name":
      return nameMath(tree.name, tree.kind);
    case "plus":
    case "minus":
      return row(
        inBrackets(tree.left, 1),
        `<mo>${tree.type === "plus" ? "+" : "−"}</mo>`,
        inBrackets(tree.right, tree.right.type === "negative" ? 4 : 2),
      );
    case "negative":
      return `<mrow><mo>−</mo>${inBrackets(tree.inner, tree.inner.type === "negative" ? 4 : 2)}</mrow>`;
    case "over":
      return `<mfrac>${math(tree.left)}${math(tree.right)}</mfrac>`;
    case "apply":
      return `<mrow>${inBrackets(tree.left, 2)}<mspace width="0.12em"/>${inBrackets(tree.right, 4)}</mrow>`;
    case "times": {
      const spread = [tree.left, tree.right].every((part) => ["field", "node", "channel"].includes(part.kind));
      const sign = spread ? "<mo>⊙</mo>" : tree.right.type === "number" ? "<mo>·</mo>" : '<mspace width="0.12em"/>';
      return `<mrow>${inBrackets(tree.left, 2)}${sign}${inBrackets(tree.right, 4)}</mrow>`;
    }
    case "power":
      return powered(tree.base.type === "over" ? brackets(tree.base) : inBrackets(tree.base, 5), tree.exponent);
    default:
      if (tree.name === "sqrt") return `<msqrt>${math(tree.argument)}</msqrt>`;
      return row(`<mi mathvariant="normal">${escaped(tree.name)}</mi>`, brackets(tree.argument));
  }
}

// All equations, with their LaTeX if Python has provided it.
function systemMath(system, latex) {
  const rows = system.lines.map(({field, order, written}) => {
    const left = `<mover>${nameMath(field, "field")}<mo>${order === 2 ? "¨" : "˙"}</mo></mover>`;
    const cell = (inner, side) => `<mtd style="text-align:${side}">${inner}</mtd>`;
    return `<mtr>${cell(left, "right")}${cell("<mo>=</mo>", "center")}${cell(math(written), "left")}</mtr>`;
  });
  const table = `<mtable columnspacing="0.4em">${rows.join("")}</mtable>`;
  const note = latex ? `<annotation encoding="application/x-tex">${escaped(latex)}</annotation>` : "";
  return `<math display="block"><semantics>${table}${note}</semantics></math>`;
}
