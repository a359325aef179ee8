// The settings of a view, how they are written into the address, and the controls that change them.

const byId = (id) => document.getElementById(id);
const clean = (x) => Number(Number(x).toPrecision(6));

const NAMED = new Map(
  CATALOGUE.flatMap((entry) => [entry.name, ...entry.aliases].map((name) => [name.toLowerCase(), entry])),
);
const entryOf = (text) =>
  NAMED.get(text.trim().toLowerCase()) ??
  CATALOGUE.find((entry) => entry.equation === text.trim() || entry.bundle.text === text.trim());

// Where a view begins: the catalogue's numbers, or plain ones.
function defaultsFor(model, entry) {
  const given = entry?.start ?? {};
  const coefficients = {};
  for (const [name, {sign}] of Object.entries(model.coefficients)) {
    const usual = ["negative", "nonpositive"].includes(sign) ? -1 : name === "a" && !entry ? 0.5 : 1;
    coefficients[name] = given.coefficients?.[name] ?? entry?.parameters[name] ?? usual;
  }
  const isOne = model.fields.length === 1;
  return {
    coefficients,
    T: given.T ?? (isOne ? 5 : 20),
    step: given.step ?? (isOne ? 0.25 : 0.05),
    method: given.method ?? (isOne ? "euler" : "rk4"),
    normalisation: "symmetric",
    start: given.start ?? "noise",
    seed: 7,
    state: 0,
    field: 0,
    axes: given.axes ?? Object.keys(coefficients).slice(0, 2),
    t: 0,
  };
}

// base and amplitude of the starts: given with the system, else around the steady state, else around 0.
function startRange(model, entry, steady) {
  if (entry?.start?.base) return {base: entry.start.base, amplitude: entry.start.amplitude};
  if (model.fields.length === 1) return {base: [0.5], amplitude: [0.5]};
  const base = steady ? steady.values : model.fields.map(() => 0);
  return {base, amplitude: base.map((x) => (steady ? 0.05 * Math.max(Math.abs(x), 0.2) : 0.5))};
}

// A slider reaches from 0 (or its mirror image) to a round number above three times the first value.
function sliderRange(value, sign) {
  const size = 10 ** Math.floor(Math.log10(Math.max(Math.abs(value), 1e-6)));
  const top =
    [1, 2, 3, 4, 5, 10, 20, 30].map((m) => m * size).find((m) => m >= 2.4 * Math.abs(value)) ?? 3 * Math.abs(value);
  const least = ["positive", "negative"].includes(sign) ? top / 1000 : 0;
  if (["negative", "nonpositive"].includes(sign)) return [-top, -least];
  return sign === "real" ? [-top, top] : [least, top];
}

// ------------------------------------------------------------------ the address
function toHash(view) {
  const {settings} = view;
  const words = new URLSearchParams({e: view.entry?.name ?? view.model.text});
  for (const [name, value] of Object.entries(settings.coefficients)) words.set(`c.${name}`, clean(value));
  for (const name of ["T", "step", "method", "normalisation", "start", "seed", "state", "field"])
    words.set(name, typeof settings[name] === "number" ? clean(settings[name]) : settings[name]);
  words.set("axes", settings.axes.join(","));
  words.set("t", clean(settings.t));
  return `#${words}`;
}

// What an address says; numbers that make no sense are left out.
function fromHash(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const settings = {coefficients: {}};
  for (const [key, text] of words) {
    const number = Number(text);
    if (key.startsWith("c.") && Number.isFinite(number) && text) settings.coefficients[key.slice(2)] = number;
    else if (["T", "step"].includes(key) && number > 0 && number < 1e7) settings[key] = number;
    else if (["seed", "state", "field", "t"].includes(key) && number >= 0 && number < 2 ** 32) settings[key] = number;
    else if (key === "method" && Object.hasOwn(METHODS, text)) settings.method = text;
    else if (key === "normalisation" && ["symmetric", "row"].includes(text)) settings.normalisation = text;
    else if (key === "start" && ["noise", "spots", "checker"].includes(text)) settings.start = text;
    else if (key === "axes") settings.axes = text.split(",");
  }
  return {equation: words.get("e"), settings};
}

// Settings of an address over the defaults of a model; what does not fit the model is left out.
function settingsFor(model, entry, wanted) {
  const settings = {...defaultsFor(model, entry), ...wanted};
  const usual = defaultsFor(model, entry).coefficients;
  settings.coefficients = Object.fromEntries(
    Object.keys(usual).map((name) => [name, wanted?.coefficients?.[name] ?? usual[name]]),
  );
  if (!settings.axes.every((name) => name in usual) || settings.axes.length !== Math.min(2, Object.keys(usual).length))
    settings.axes = Object.keys(usual).slice(0, 2);
  settings.field = Math.min(settings.field, model.fields.length - 1);
  if (settings.T / settings.step > 2e6) settings.step = settings.T / 2e6;
  return settings;
}

// ------------------------------------------------------------------ controls
// A slider and a number for one value; both are named by the same label.
function slider(parent, {id, name, value, low, high, isLog, change}) {
  const row = document.createElement("div");
  row.className = "slider";
  const label = document.createElement("label");
  label.htmlFor = `${id}-slider`;
  label.textContent = GREEK[name] ?? name;
  const range = Object.assign(document.createElement("input"), {
    type: "range",
    id: `${id}-slider`,
    min: 0,
    max: 1000,
    step: 1,
  });
  const number = Object.assign(document.createElement("input"), {
    type: "number",
    id: `${id}-number`,
    step: "any",
    value: clean(value),
  });
  number.setAttribute("aria-label", `${name}, as a number`);
  const toPlace = (x) => 1000 * (isLog ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low));
  const toValue = (p) => clean(isLog ? low * (high / low) ** (p / 1000) : low + (p / 1000) * (high - low));
  const show = (x) => {
    range.value = toPlace(x);
    range.setAttribute("aria-valuetext", shown(x));
  };
  show(value);
  range.addEventListener("input", () => {
    const x = toValue(Number(range.value));
    number.value = x;
    range.setAttribute("aria-valuetext", shown(x));
    change(x);
  });
  number.addEventListener("change", () => {
    const x = Number(number.value);
    if (number.value !== "" && Number.isFinite(x) && (!isLog || x > 0)) {
      show(x);
      change(x);
    }
  });
  row.append(label, range, number);
  parent.append(row);
  return (x) => {
    number.value = clean(x);
    show(x);
  };
}

function options(select, values, chosen, words = (x) => x) {
  select.replaceChildren(
    ...values.map((value) => Object.assign(document.createElement("option"), {value, textContent: words(value)})),
  );
  select.value = chosen;
}
