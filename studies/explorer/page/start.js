// Events, and the first view.

function listen() {
  byId("equation-form").addEventListener("submit", (event) => {
    event.preventDefault();
    choose(byId("equation").value).then(begin);
  });
  byId("catalogue").addEventListener("change", (event) => {
    if (event.target.value) choose(event.target.value).then(begin);
  });
  byId("play").addEventListener("click", () => play());
  byId("restart").addEventListener("click", () => {
    rewind();
    writeHash();
  });
  byId("time").addEventListener("input", (event) => scrub((view.settings.T * Number(event.target.value)) / 1000));
  byId("field").addEventListener("change", (event) => {
    view.settings.field = Number(event.target.value);
    drawStates();
    drawEnergy();
    writeHash();
  });
  for (const name of ["method", "normalisation", "start"])
    byId(name).addEventListener("change", (event) => {
      view.settings[name] = event.target.value;
      refresh();
    });
  byId("seed").addEventListener("change", (event) => {
    const seed = Math.floor(Number(event.target.value));
    if (seed >= 0 && seed < 2 ** 32) {
      view.settings.seed = seed;
      refresh();
    }
  });
  byId("state").addEventListener("change", (event) => {
    view.settings.state = Number(event.target.value);
    refresh();
  });
  for (const [k, id] of ["xname", "yname"].entries())
    byId(id).addEventListener("change", (event) => {
      const axes = view.settings.axes;
      if (axes[1 - k] === event.target.value) axes[1 - k] = axes[k];
      axes[k] = event.target.value;
      byId("xname").value = axes[0];
      byId("yname").value = axes[1];
      refresh();
    });
  listenToPhase();
  listenToExports();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    view.phaseKey = "";
    refresh();
  });
  addEventListener("hashchange", (event) => {
    const {hash} = new URL(event.newURL);
    if (hash !== view.ownHash) openView(hash);
  });
}

function listenToPhase() {
  const plane = byId("phase");
  let isDragging = false;
  const follow = (event) => {
    if (isDragging && view.drawn.phase) moveTo(view.drawn.phase.valuesAt(event));
  };
  plane.addEventListener("pointerdown", (event) => {
    isDragging = true;
    plane.setPointerCapture(event.pointerId);
    follow(event);
  });
  plane.addEventListener("pointermove", follow);
  for (const end of ["pointerup", "pointercancel"])
    plane.addEventListener(end, () => {
      isDragging = false;
    });
  plane.addEventListener("keydown", (event) => {
    const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (!move || !view.drawn.phase) return;
    event.preventDefault();
    moveTo(
      view.settings.axes.map((name, k) => {
        const [low, high] = view.ranges[name];
        return Math.max(
          low,
          Math.min(
            high,
            view.settings.coefficients[name] +
              move[k] * Number(((high - low) / (event.shiftKey ? 10 : 50)).toPrecision(2)),
          ),
        );
      }),
    );
  });
}

// The view of an address; one without a time plays from the start.
async function openView(hash) {
  const {equation, settings} = fromHash(hash);
  const isRead = await choose(equation ?? START.equation, equation ? settings : null);
  if (settings.t === undefined) begin(isRead);
}

// Play an equation that could be read, once it is drawn; show the end of its run where motion is not wanted.
function begin(isRead) {
  if (!isRead) return;
  requestAnimationFrame(() => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) scrub(view.settings.T);
    else play(true);
  });
}

options(byId("catalogue"), ["", ...CATALOGUE.map((entry) => entry.name)], "", (name) => {
  const title = name && NAMED.get(name.toLowerCase()).title;
  return !name ? "pick one …" : title.toLowerCase().startsWith(name.toLowerCase()) ? title : `${name}: ${title}`;
});
options(byId("method"), Object.keys(METHODS), "euler");
byId("grid").width = byId("grid").height = SIDE;
byId("grid-size").textContent = `${SIDE} × ${SIDE}, joined at the edges`;
byId("graph-name").textContent = GRAPH.name;
document.documentElement.style.setProperty("--ramp", COLOURMAP.filter((_, k) => k % 7 === 0).join(", "));
listen();
openView(location.hash);
