// Trees as MathML, term by term as they were written.

const GREEK = {alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", kappa: "κ", mu: "μ", nu: "ν", eta: "η", theta: "θ", rho: "ρ", sigma: "σ", omega: "ω", xi: "ξ", lam: "λ", tau: "τ"};
const LEVEL = {plus: 1, minus: 1, times: 2, over: 2, apply: 2, negative: 3, power: 4};
const levelOf = (tree) => LEVEL[tree.type] ?? 5;
const escaped = (text) => text.replace(/[&<>]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;"})[c]);

function nameMath(name, kind) {
  const base = name.replace(/'/g, "");
  const isStart = kind === "field" && base.length > 1 && base.endsWith("0");
  const [, stem, index] = /^(D)_?([A-Za-z])$/.exec(base) ?? /^([A-Za-z]+)_?(\d+)$/.exec(isStart ? base.slice(0, -1) : base) ?? [null, isStart ? base.slice(0, -1) : base, ""];
  const letter = GREEK[stem] ?? stem;
  const bold = ["field", "operator", "matrix"].includes(kind);
  let math = `<mi${bold ? ' class="bold" mathvariant="normal"' : letter.length > 1 ? ' mathvariant="normal"' : ""}>${escaped(letter)}</mi>`;
  if (index) math = `<msub>${math}<mi>${index}</mi></msub>`;
  if (name.endsWith("'")) math = `<mover>${math}<mo>˙</mo></mover>`;
  return isStart ? `<mrow>${math}<mo>(</mo><mn>0</mn><mo>)</mo></mrow>` : math;
}

function math(tree) {
  const inBrackets = (part, level) => (levelOf(part) >= level || part.type === "over" || part.type === "call" ? math(part) : `<mrow><mo>(</mo>${math(part)}<mo>)</mo></mrow>`);
  switch (tree.type) {
    case "number": return `<mn>${escaped(tree.text)}</mn>`;
    case "name": return nameMath(tree.name, tree.kind);
    case "plus": case "minus": return `<mrow>${inBrackets(tree.left, 1)}<mo>${tree.type === "plus" ? "+" : "−"}</mo>${inBrackets(tree.right, tree.right.type === "negative" ? 4 : 2)}</mrow>`;
    case "negative": return `<mrow><mo>−</mo>${inBrackets(tree.inner, tree.inner.type === "negative" ? 4 : 2)}</mrow>`;
    case "over": return `<mfrac>${math(tree.left)}${math(tree.right)}</mfrac>`;
    case "apply": return `<mrow>${inBrackets(tree.left, 2)}<mspace width="0.12em"/>${inBrackets(tree.right, 4)}</mrow>`;
    case "times": {
      const spread = [tree.left, tree.right].every((part) => ["field", "node", "channel"].includes(part.kind));
      const sign = spread ? "<mo>⊙</mo>" : tree.right.type === "number" ? "<mo>·</mo>" : '<mspace width="0.12em"/>';
      return `<mrow>${inBrackets(tree.left, 2)}${sign}${inBrackets(tree.right, 4)}</mrow>`;
    }
    case "power": return `<msup>${tree.base.type === "over" ? `<mrow><mo>(</mo>${math(tree.base)}<mo>)</mo></mrow>` : inBrackets(tree.base, 5)}<mn>${tree.exponent}</mn></msup>`;
    default:
      if (tree.name === "sqrt") return `<msqrt>${math(tree.argument)}</msqrt>`;
      return `<mrow><mi mathvariant="normal">${escaped(tree.name)}</mi><mo>(</mo>${math(tree.argument)}<mo>)</mo></mrow>`;
  }
}

function systemMath(system) {
  const rows = system.lines.map(({field, order, written}) => {
    const left = `<mover>${nameMath(field, "field")}<mo>${order === 2 ? "¨" : "˙"}</mo></mover>`;
    return `<mtr><mtd style="text-align:right">${left}</mtd><mtd><mo>=</mo></mtd><mtd style="text-align:left">${math(written)}</mtd></mtr>`;
  });
  return `<math display="block"><mtable columnspacing="0.4em">${rows.join("")}</mtable></math>`;
}
