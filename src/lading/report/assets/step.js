// The step of a task that a request is for: budgets by layer, signals, what its payload shows and leaves out.

/** Return the record of the payload that a call shows, which its first request has; null: the call is for no step. */
function payloadOf(session, call) {
  const wanted = call.data.sent?.step?.payload;
  if (!wanted) return null;
  return session.calls.find(({ data }) => data.sent?.step?.record && data.sent.step.payload === wanted)?.data.sent.step.record ?? null;
}

/** Render the step of a call; null: it is for none. */
function stepPanel(session, call) {
  const record = payloadOf(session, call);
  if (!record) return null;
  const repair = record.repair ? `, repair ${record.repair}` : "";
  return h("section.step",
    h("h3", say(h("span"), `Step ${record.step_id} of task ${record.task_id}`), say(h("small"), ` ${record.role}${repair}; as of its payload`)),
    h("div.scroll", layerTable(record, call.frame.budget.window_tokens)),
    h("dl.facts", stepFacts(record, call.data.sent.step.outcomes ?? []).flatMap(([name, rows]) => [h("dt", name), h("dd", rows.map((row) => say(h("div"), row)))])),
    droppedBlock(record.dropped ?? []));
}

/** Render what each layer holds against its share of the window, and its budget after unused tokens are handed on. */
function layerTable(record, window) {
  const rows = Object.entries(record.layers ?? {}).map(([layer, { percent: share, tokens, used = 0 }]) => {
    const due = (window * parseInt(share, 10)) / 100;
    const isHeld = layer !== "slack_min";  // For the answer: the request holds nothing of it.
    const bar = h(`i.bar.${layer}`);
    bar.style.width = `${(due ? Math.min(used / due, 1) : Number(used > 0)) * 100}%`;
    return h("tr", { "data-layer": layer }, h("th", { scope: "row" }, layer), h("td.n", share), h("td.n", number(tokens)),
      h("td.n", isHeld ? number(used) : ""), h("td.fill", isHeld ? h("span.room", { title: `${number(used)} of ${number(due)} tokens` }, bar) : null));
  });
  const head = [["layer", ""], ["share", "Of the window"], ["budget", "Tokens, after what other layers do not need was handed on"], ["holds", "Tokens"]];
  return h("table.budgets",
    h("thead", h("tr", head.map(([name, title], at) => h(`th${at ? ".n" : ""}`, { scope: "col", title: title || null }, name)), h("th", { scope: "col" }, "of share"))),
    h("tbody", rows));
}

function stepFacts(record, outcomes) {
  const signals = Object.entries(record.signals ?? {}).map(([name, value]) => `${name} ${Number(value.toPrecision(3))}`);
  const checks = outcomes.flatMap(({ items = [] }) => items.map(({ id, status, why }) => `${id} ${status}${why ? `: ${why}` : ""}`));
  return [
    ["signals", signals.length ? [signals.join(", ")] : []],
    ["evidence", (record.artifacts ?? []).map(({ uri, covers }) => `${uri}${covers?.length ? ` covers ${covers.join(", ")}` : ""}`)],
    ["memories", record.memory_ids?.length ? [record.memory_ids.join(", ")] : []],
    ["needs evidence", record.evidence_needed?.length ? [record.evidence_needed.join(", ")] : []],
    ["acceptance", checks],
  ].filter(([, rows]) => rows.length);
}

/** Render what the payload does not show, by layer and reason. */
function droppedBlock(dropped) {
  return dropped.map(({ layer, reason, dropped_ids: ids = [] }) =>
    lazy(`left out or shortened in ${layer}: ${number(ids.length)}, ${reason}`, () => [h("div", ids.map((id) => say(h("div"), id)))], { name: "left-out" }));
}
