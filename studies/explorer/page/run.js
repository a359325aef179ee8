// Runs: a start, a graph and a method; states are stored at regular times, so that the player can go back.

const FRAMES = {small: 240, large: 100};
const DIVERGED = 1e12;

// The starts of all fields: base + amplitude*shape, with shapes that the exported Python repeats.
function startsOf(kind, graph, fields, {base, amplitude}, seed) {
  const noise = makeNoise(seed);
  const shape = fields.map(() => new Float64Array(graph.nodes));
  if (kind === "noise") for (const one of shape) for (let i = 0; i < graph.nodes; i++) one[i] = 2 * noise() - 1;
  else if (kind === "checker")
    for (const one of shape)
      for (let i = 0; i < graph.nodes; i++) one[i] = (graph.side ? Math.floor(i / graph.side) + i : i) % 2 ? -1 : 1;
  else for (const at of spots(graph, noise)) for (const one of shape) one[at] = 1;
  return shape.map((one, k) => one.map((x) => base[k] + amplitude[k] * x));
}

function spots(graph, noise) {
  if (!graph.side) return Array.from({length: Math.ceil(graph.nodes / 7)}, (_, k) => 7 * k);
  const found = [];
  for (let spot = 0; spot < 14; spot++) {
    const [row, column] = [Math.floor(noise() * graph.side), Math.floor(noise() * graph.side)];
    for (let i = -4; i <= 4; i++)
      for (let j = -4; j <= 4; j++) {
        if (i * i + j * j <= 16)
          found.push(((row + i + graph.side) % graph.side) * graph.side + ((column + j + graph.side) % graph.side));
      }
  }
  return found;
}

class Run {
  constructor(model, graph, settings, range) {
    const starts = startsOf(settings.start, graph, model.fields, range, settings.seed);
    const fixed = Object.fromEntries(model.fields.map((f, k) => [startOf(f), starts[k]]));
    fixed.M = Float64Array.from({length: graph.nodes}, (_, i) => Number(i < graph.nodes / 2));
    const field = makeField(model.plan, model.fields, graph, settings.coefficients, fixed);
    const {full, rest} = stepsOf(settings.T, settings.step);
    Object.assign(this, {
      graph,
      T: settings.T,
      step: settings.step,
      count: full + (rest > 0),
      full,
      rest,
      taken: 0,
      failed: null,
      energies: [],
      states: starts.map((one) => one.slice()),
      work: new Float64Array(graph.nodes),
      frames: [],
      seconds: 0,
      advance: makeStepper(field, METHODS[settings.method], model.fields.length, graph.nodes),
    });
    this.every = Math.max(1, Math.ceil(this.count / (graph.side ? FRAMES.large : FRAMES.small)));
    this.keep();
  }

  get time() {
    return this.taken > this.full ? this.T : Math.min(this.T, this.taken * this.step);
  }

  get isDone() {
    return this.taken >= this.count || this.failed !== null;
  }

  // Steps until a time is reached or the milliseconds are spent.
  advanceTo(time, milliseconds) {
    const began = performance.now();
    while (!this.isDone && this.time < time - 1e-12 && performance.now() - began < milliseconds) {
      this.advance(this.time, this.states, this.taken < this.full ? this.step : this.rest);
      this.taken++;
      if (this.taken % this.every === 0 || this.taken === this.count) this.keep();
    }
    this.seconds += (performance.now() - began) / 1000;
  }

  keep() {
    const isFinite = this.states.every((one) => {
      for (let i = 0; i < one.length; i++) if (!(Math.abs(one[i]) < DIVERGED)) return false;
      return true;
    });
    if (!isFinite) {
      this.failed = this.time;
      return;
    }
    this.frames.push({
      t: this.time,
      states: this.states.map((one) => (this.graph.side ? Float32Array.from(one) : one.slice())),
    });
    this.energies.push(this.states.map((one) => laplacianEnergy(this.graph, one, this.work)));
  }

  // The stored states nearest to a time; at the front, the newest ones.
  at(time) {
    if (this.failed === null && time >= this.time - 1e-12) return {t: this.time, states: this.states};
    const near = this.frames.findLastIndex((frame) => frame.t <= time + 1e-12);
    return this.frames[Math.max(0, near)];
  }
}
