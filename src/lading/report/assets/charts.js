// The charts of a session: stacked panels over the same calls, with a common cursor.

const LEFT = 52, RIGHT = 138, HEAD_ROOM = 8;

/** Build the charts of a session's calls. `onSelect(position)` receives a chosen call, `onRange(range)` a range. */
function sessionChart(session, { onSelect, onRange }) {
  const whole = [0, session.calls.length - 1];
  const state = { range: whole, hover: null, selected: null, isWhole: false, band: null, drag: null };
  const panels = [tokensPanel, removedPanel, costPanel, totalPanel, errorPanel]
    .map((make) => make(session)).filter(Boolean)
    .map((panel) => ({ panel, svg: v("svg", { "aria-hidden": "true" }), values: h("div.values") }));
  const back = h("button.quiet", { type: "button", hidden: true, onclick: () => setRange(whole) }, "All calls");
  const fit = h("button.quiet", { type: "button", "aria-pressed": "false", onclick: () => toggleWhole() }, "Fit everything");
  const element = h("section.chart", {
    tabindex: "0", role: "slider", "aria-label": "Call", "aria-valuemin": "1", "aria-valuemax": String(session.calls.length),
    onkeydown: onKey,
  }, panels.map(({ panel, svg, values }) =>
    h("figure", { id: `chart-${panel.id}` },
      h("figcaption", h("h3", panel.title), values, panel.id === "tokens" ? h("span.tools", back, fit) : null), svg)));
  let width = 0;

  function draw() {
    width = element.clientWidth;
    if (!width) return;
    for (const item of panels) drawPanel(item);
    read();
  }

  function drawPanel(item) {
    const { panel, svg } = item;
    const isNarrow = width < 640;
    const left = isNarrow ? 54 : LEFT, right = isNarrow ? 4 : RIGHT;
    const isLast = panel === panels.at(-1).panel;
    const above = panel.hangs ? 14 : HEAD_ROOM, below = isLast || panel.id === "removed" ? 18 : 6;
    const box = { x: left, y: above, width: width - left - right, height: panel.height };
    const full = panel.height + above + below;
    const scale = slots(state.range, box.x, box.width);
    const top = panel.top(state.range, state.isWhole), y = heights(top, box.y, box.height);
    item.scale = scale;
    const frame = { scale, y, top, box };
    svg.setAttribute("viewBox", `0 0 ${width} ${full}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", full);
    const labels = isNarrow || !panel.labels ? [] : apart(panel.labels(frame), 14, box.y + 4, box.y + box.height);
    item.cursors = v("g.cursors");
    svg.replaceChildren(
      ...grid(panel, frame, isNarrow),
      ...(state.band && panel.id === "tokens" ? [band(scale, box)] : []),
      ...panel.draw(frame),
      ...(panel.id === "removed" ? [] : missing(session, frame)),
      ...(isLast || panel.id === "removed" ? axis(scale, box, session) : []),
      ...labels.map((label) => v(`text.label.${label.kind}`, { x: box.x + box.width + 8, y: label.y + 4 }, label.text)),
      item.cursors,
    );
    item.box = box;
  }

  function band(scale, box) {
    const first = Math.max(state.band[0], scale.first), last = Math.min(state.band[1], scale.last);
    const x = scale.start(first);
    return v("rect.found", { x, y: box.y, width: Math.max(scale.start(last + 1) - x, 0), height: box.height });
  }

  /** Draw the cursors and the values at their calls. */
  function read() {
    const position = state.hover ?? state.selected ?? session.calls.length - 1;
    const call = session.calls[position];
    for (const { panel, scale, box, cursors, values } of panels) {
      cursors.replaceChildren();
      for (const [name, at] of [["selected", state.selected], ["hover", state.hover]]) {
        if (at === null || at < scale.first || at > scale.last) continue;
        const x = scale.middle(at);
        cursors.append(v(`line.${name}`, { x1: x, x2: x, y1: box.y - (panel.hangs ? 14 : 4), y2: box.y + box.height }));
      }
      if (state.drag) {
        const [first, last] = ordered(state.drag);
        cursors.append(v("rect.drag", { x: scale.start(first), y: box.y, width: scale.start(last + 1) - scale.start(first), height: box.height }));
      }
      values.replaceChildren(
        ...(panel.id === "tokens" ? [h("b.which", `call ${number(call.number)}`)] : []),
        ...panel.items(position).map(([shape, kind, name, value]) => h("span.value", key(shape, kind), name, h("b", value))),
      );
    }
    element.setAttribute("aria-valuenow", String(position + 1));
    element.setAttribute("aria-valuetext", `call ${call.number}: ${number(call.tokens)} tokens, ${money(call.cost.total, session)}`);
  }

  function setRange(range) {
    state.range = range;
    back.hidden = range[0] === whole[0] && range[1] === whole[1];
    draw();
    onRange(back.hidden ? null : range);
  }

  function toggleWhole() {
    state.isWhole = !state.isWhole;
    fit.setAttribute("aria-pressed", String(state.isWhole));
    draw();
  }

  function onKey(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const from = state.selected ?? session.calls.length - 1;
    onSelect(Math.min(Math.max(from + step, 0), session.calls.length - 1));
  }

  for (const item of panels) listen(item);

  function listen(item) {
    const at = (event) => item.scale.at(event.clientX - item.svg.getBoundingClientRect().left);
    item.svg.addEventListener("pointermove", (event) => {
      state.hover = at(event);
      if (state.drag) state.drag[1] = state.hover;
      read();
    });
    item.svg.addEventListener("pointerleave", () => {
      state.hover = null;
      read();
    });
    item.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      state.drag = [at(event), at(event)];
      item.svg.setPointerCapture(event.pointerId);
    });
    item.svg.addEventListener("pointerup", () => {
      if (!state.drag) return;
      const [first, last] = ordered(state.drag);
      const isBrush = last > first && (last - first + 1) * item.scale.step > 6;
      state.drag = null;
      if (isBrush) setRange([first, last]);
      else onSelect(first);
    });
    item.svg.addEventListener("pointercancel", () => {
      state.drag = null;
      read();
    });
    item.svg.addEventListener("dblclick", () => setRange(whole));
  }

  new ResizeObserver(() => element.clientWidth !== width && draw()).observe(element);
  return {
    element,
    draw,
    select(position) {
      state.selected = position;
      const [first, last] = state.range;
      if (position !== null && (position < first || position > last)) setRange(whole);
      else if (width) read();
    },
    mark(range) {
      state.band = range;
      if (width) draw();
    },
  };
}

function grid(panel, { y, top, box }, isNarrow) {
  const values = panel.hangs ? [] : panel.ticks ?? ticks(top, Math.max(Math.round(box.height / 45), 3));
  return values.flatMap((value) => [
    v("line.grid", { x1: box.x, x2: box.x + box.width, y1: y(value), y2: y(value) }),
    v("text.tick", { x: box.x - 6, y: y(value) + 4, "text-anchor": "end" }, isNarrow ? panel.tick(value).replace(" tok", "") : panel.tick(value)),
  ]);
}

function axis(scale, box, session) {
  const y = box.y + box.height + 14;
  const count = scale.last - scale.first + 1;
  const step = Math.max(Math.ceil(ticks(count, Math.max(box.width / 90, 2))[1] ?? 1), 1);
  const shown = [];
  for (let at = scale.first; at <= scale.last; at++) {
    if (at === scale.first || session.calls[at].number % step === 0) shown.push(at);
  }
  if (shown.length > 1 && scale.middle(shown[1]) - scale.middle(shown[0]) < 36) shown.splice(1, 1);
  return shown.map((at) => v("text.tick", { x: scale.middle(at), y, "text-anchor": "middle" }, number(session.calls[at].number)));
}

/** Draw a legend sample. */
function key(shape, kind) {
  const sample = v("svg.key", { viewBox: "0 0 14 10", width: 14, height: 10, "aria-hidden": "true" });
  if (shape === "area") sample.append(v(`rect.area.${kind}`, { x: 1, y: 0, width: 10, height: 10, rx: 1.5 }));
  else if (shape === "line") sample.append(v(`path.line.${kind}`, { d: "M0 5H13" }));
  else sample.append(v(`path.glyph.${kind}`, { d: GLYPHS[kind], transform: "translate(6 5)" }));
  return sample;
}

const ordered = ([one, other]) => [Math.min(one, other), Math.max(one, other)];

/** Draw a sparkline of a session's tokens per call. */
function sparkline(session) {
  const width = 120, height = 24, calls = session.calls;
  if (!calls.length) return null;
  const scale = slots([0, calls.length - 1], 0, width);
  const limit = session.totals.peak;
  const y = heights(limit || 1, 1, height - 2);
  return v("svg.spark", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    v("path.area.own", { d: stepArea(scale, (at) => y(calls[at].tokens), () => y(0)) }));
}
