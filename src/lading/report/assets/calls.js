// The table of calls. Only visible rows are in the page, so that thousands of calls stay fast.

const ROW = 27, SPARE_ROWS = 8;

const FILTERS = [
  ["all", "all", () => true],
  ["edits", "with edits", (call) => call.forcedEdits + call.voluntaryEdits > 0],
  ["broken", "prefix changed", (call) => Boolean(call.data.prefix?.first_changed)],
  ["errors", "no request", (call) => call.isError],
];

const COLUMNS = [
  ["call", "call", "Number of the call"],
  ["size", "tokens", "Input tokens of the request; the bar is its share of the window"],
  ["new", "new", "Tokens that were not read from the cache"],
  ["cost", "cost", "Cost of its input"],
  ["full", "everything", "Input cost of sending everything at this call"],
  ["edits", "removed", "Tokens removed by edits of this call; diamond: forced, ring: voluntary"],
];

/** Build the table of a session's calls. `onSelect(position)` receives the chosen one. */
function callsTable(session, { onSelect }) {
  const present = new Map();
  const state = { shown: session.calls.map((call) => call.position), selected: null, filter: "all", range: null };
  const rows = h("div.rows", { role: "rowgroup" });
  const head = h("div.row.head", { role: "row" }, COLUMNS.map(([name, label, title]) => h(`span.${name}`, { role: "columnheader", title }, label)));
  const port = h("div.port", { tabindex: "0", role: "grid", "aria-label": "Calls", "aria-colcount": String(COLUMNS.length), onscroll: () => fill(), onkeydown: onKey }, head, rows);
  const count = h("span.count", { role: "status" });
  const filters = h("div.filters", { role: "group", "aria-label": "Which calls" }, FILTERS
    .map(([name, label, test]) => [name, label, session.calls.filter(test).length])
    .filter(([name, , size]) => size && (name === "all" || size < session.calls.length || name === "errors"))
    .map(([name, label, size]) => h("button.quiet", {
      type: "button", "data-filter": name, "aria-pressed": String(name === "all"), onclick: () => filter(name),
    }, `${label} `, h("small", number(size)))));
  const element = h("section.calls", h("header", h("h2", "Calls"), filters, count), port);

  function choose() {
    const test = FILTERS.find(([name]) => name === state.filter)[2];
    const [first, last] = state.range ?? [0, session.calls.length - 1];
    state.shown = session.calls.slice(first, last + 1).filter(test).map((call) => call.position);
    rows.style.height = `${state.shown.length * ROW}px`;
    port.setAttribute("aria-rowcount", String(state.shown.length));
    count.textContent = state.range ? `${number(session.calls[first].number)} to ${number(session.calls[last].number)}` : "";
    refill();
  }

  /** Add the rows that became visible, remove those that are no longer. */
  function fill() {
    const first = Math.max(Math.floor(port.scrollTop / ROW) - SPARE_ROWS, 0);
    const last = Math.min(Math.ceil((port.scrollTop + (port.clientHeight || 600)) / ROW) + SPARE_ROWS, state.shown.length);
    for (const [index, element] of present) {
      if (index >= first && index < last) continue;
      element.remove();
      present.delete(index);
    }
    for (let index = first; index < last; index++) {
      if (present.has(index)) continue;
      const element = row(session.calls[state.shown[index]], index);
      present.set(index, element);
      rows.append(element);
    }
  }

  function refill() {
    for (const element of present.values()) element.remove();
    present.clear();
    fill();
  }

  function row(call, index) {
    const isSelected = call.position === state.selected;
    const bar = h("i.bar");
    bar.style.width = `${Math.min(call.tokens / call.frame.budget.window_tokens, 1) * 100}%`;
    const element = h(`div.row${isSelected ? ".selected" : ""}${call.isError ? ".error" : ""}`, {
      role: "row", "aria-rowindex": String(index + 1), "aria-selected": String(isSelected), "data-call": String(call.number),
      onclick: () => onSelect(call.position),
    },
      cell("call", number(call.number)),
      call.isError ? h("span.size", { role: "gridcell", title: "no request could be built" }, "failed") : h("span.size", { role: "gridcell" }, number(call.tokens), h("span.room", bar)),
      cell("new", call.isError ? "" : short(call.data.simulated.written_tokens + call.data.simulated.fresh_tokens)),
      cell("cost", call.isError ? "\u2013" : money(call.cost.total, session)),
      cell("full", call.isError || !call.everything ? "\u2013" : money(call.fullCost.total, session)),
      h("span.edits", { role: "gridcell" }, editMarks(call)),
    );
    element.style.top = `${index * ROW}px`;
    return element;
  }

  const cell = (name, text) => h(`span.${name}`, { role: "gridcell" }, text);

  function filter(name) {
    state.filter = name;
    for (const button of filters.children) button.setAttribute("aria-pressed", String(button.dataset.filter === name));
    port.scrollTop = 0;
    choose();
  }

  function onKey(event) {
    const page = Math.max(Math.floor(port.clientHeight / ROW) - 1, 1);
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || !state.shown.length || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const place = state.shown.indexOf(state.selected);
    onSelect(state.shown[Math.min(Math.max((place < 0 ? 0 : place) + step, 0), state.shown.length - 1)]);
  }

  choose();
  return {
    element,
    draw: () => fill(),
    select(position) {
      const before = state.shown.indexOf(state.selected), place = state.shown.indexOf(position);
      state.selected = position;
      for (const index of [before, place]) {
        present.get(index)?.remove();
        present.delete(index);
      }
      if (place >= 0) {
        const y = place * ROW, room = port.clientHeight - ROW;
        if (y < port.scrollTop || y + ROW > port.scrollTop + room) port.scrollTop = y - room / 2;
      }
      fill();
    },
    within(range) {
      state.range = range;
      choose();
    },
    /** Find the next call with edits in this direction from a position; null: there is none. */
    nextEdited(position, step) {
      for (let at = position + step; at >= 0 && at < session.calls.length; at += step) {
        if (session.calls[at].removed) return at;
      }
      return null;
    },
  };
}

/** Describe the edits of a call: their number by kind, and the tokens they removed. */
function editMarks(call) {
  if (!call.forcedEdits && !call.voluntaryEdits) return [];
  const kind = call.forcedEdits ? "forced" : "voluntary";
  const title = `${plural(call.forcedEdits, "forced edit")}, ${plural(call.voluntaryEdits, "voluntary edit")}`;
  return [h("span", { title }, key("mark", kind), `\u2212${short(call.removed)}`)];
}
