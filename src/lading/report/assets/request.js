// One request as the model saw it, with removed content in place: reason, call, pointer and text.

const LONG_CHARS = 1400, LONG_LINES = 18;

/** Fill `element` with the request of a call. `focus`: an entry to go to; `query`: words to mark. */
function showRequest(element, session, call, { focus = null, query = null } = {}) {
  const items = call.isError ? [] : requestOf(session, call);
  const blocks = items.map((item) => itemBlock(session, call, item, { query, focus }));
  const border = cacheBorder(session, call, items);
  if (border) blocks.splice(border.index, 0, border.element);
  const messages = h("div.messages", { role: "list" }, blocks);
  element.replaceChildren(
    requestHead(session, call, items, { element, messages }),
    ...(call.isError ? [h("p.verdict.error", "No request could be built. "), say(h("p.session-text"), call.data.error)] : []),
    ...(call.isError ? [] : [stepPanel(session, call), memoryPanel(call), offered(session, call)].filter(Boolean)),
    messages,
  );
  const wanted = focus === null ? null : element.querySelector(`[data-entry="${focus}"]`) ?? spanHolding(element, focus);
  if (wanted) {
    wanted.classList.add("focus");
    const inside = wanted.querySelector(`[data-raw="${focus}"]`);
    inside?.classList.add("focus");
    for (const place of [wanted, inside, inside?.querySelector("mark") ?? wanted.querySelector("mark")]) place?.scrollIntoView({ block: "center" });
  }
}

function spanHolding(element, entry) {
  return [...element.querySelectorAll("[data-last]")]
    .find((block) => Number(block.dataset.entry) <= entry && entry <= Number(block.dataset.last)) ?? null;
}

function requestHead(session, call, items, { element, messages }) {
  const { prefix, sent } = call.data;
  const past = pastWords(session, items);
  const edits = items.filter((item) => item.edit !== null && isCompaction(session.edits[item.edit])).length;
  const facts = [
    ["tokens", `${number(call.tokens)} of ${number(call.frame.budget.window_tokens)}${expectedWords(call)}`],
    sent?.cause && ["reason for the call", CAUSES[sent.cause] ?? sent.cause],
    !call.isError && ["cost", call.isRefused ? "none: the provider did not answer the request" : `${money(call.cost.total, session)}, ${call.everything ? `everything sent ${money(call.fullCost.total, session)}` : "not a call of the caller, so no part of everything sent"} (simulated)`],
    call.reportedCost && ["as billed", `${money(call.reportedCost.total, session)} for ${number(call.data.reported.input_tokens)} tokens in, ${number(call.data.reported.output_tokens ?? 0)} out`],
    call.recordedCost && ["recorded run", `${money(call.recordedCost.total, session)} for ${number(call.data.recorded.input_tokens)} tokens in, ${number(call.data.recorded.output_tokens ?? 0)} out; not this request`],
    past && ["record", past],
    prefix?.first_changed && ["prefix", `changed from ${prefix.first_changed} on: ${prefix.why}`],
    call.data.at_s && ["made", new Date(call.data.at_s * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC"],
    sent && ["sent", `${number(sent.body_bytes)} bytes, ${sent.digest.slice(0, 12)}`],
  ].filter(Boolean);
  const jump = (step) => () => jumpEdit(element, step);
  return h("header",
    h("h2", { tabindex: "-1" }, `Call ${number(call.number)}`, h("small", call.isError ? " no request" : ` the request as the model saw it`)),
    h("dl.facts", facts.flatMap(([name, value]) => [h("dt", name), say(h("dd"), value)])),
    h("p.tools",
      h("span", edits ? `${plural(edits, "edit")} in it` : `nothing was removed: the raw history${call.data.sent?.step ? " and payloads of steps" : ""}`),
      edits ? [h("button.quiet", { type: "button", onclick: jump(-1), "aria-keyshortcuts": "[" }, "previous edit"), h("button.quiet", { type: "button", onclick: jump(1), "aria-keyshortcuts": "]" }, "next edit")] : [],
      items.length && session.calls.length > 1 ? besideControl(session, call, messages) : []),
    items.length ? tokenStrip(session, call, items, element) : null,
  );
}

const CAUSES = { restore: "the model restored removed content", retry: "the provider refused the previous request as too long" };

/** Describe the expected and the reported tokens. */
function expectedWords({ data, countError: error }) {
  const expected = data.sent?.expected_tokens;
  const words = expected ? `; expected to be billed as ${number(expected)}, after ${plural(data.sent.learned_from, "report")}` : "";
  return error === null ? words : `${words}; reported ${number(data.reported.input_tokens)} (${error > 0 ? "+" : ""}${percent(error, 2)} off)`;
}

/** Draw the request as a bar with a segment for each message, as wide as its tokens; pressing one goes there. */
function tokenStrip(session, call, items, element) {
  const fixed = call.layers.tools ?? 0;
  const total = fixed + sum(items.map((item) => item.tokens)) || 1;
  const groups = [];
  let start = fixed;
  for (const item of items) {
    const kind = kindOf(session, item);
    const last = groups.at(-1);
    if (last && last.kind === kind) last.end = start + item.tokens;
    else groups.push({ kind, start, end: start + item.tokens });
    start += item.tokens;
  }
  const rect = ({ kind, start: from, end }) => v(`rect.area.${kind}`, { x: (from / total) * 1000, width: Math.max(((end - from) / total) * 1000, 0.4), height: 14 });
  const strip = v("svg.strip", { viewBox: "0 0 1000 14", preserveAspectRatio: "none", role: "img", "aria-label": "Tokens of each message, in order" },
    ...(fixed ? [rect({ kind: "tools", start: 0, end: fixed })] : []), ...groups.map(rect));
  strip.addEventListener("click", (event) => {
    const box = strip.getBoundingClientRect();
    let wanted = ((event.clientX - box.left) / box.width) * total - fixed;
    const item = items.find((candidate) => (wanted -= candidate.tokens) < 0) ?? items.at(-1);
    goTo(element.querySelector(`.block[data-entry="${item.entry}"]`));
  });
  return strip;
}

function kindOf(session, item) {
  if (item.edit !== null && isCompaction(session.edits[item.edit])) return "stand-ins";
  const { message } = session.entries[item.entry];
  if (message.role === "system") return "system";
  return holdsResult(message) ? "results" : "messages";
}

function goTo(block) {
  if (!block) return;
  block.closest(".messages")?.querySelectorAll(".focus").forEach((other) => other.classList.remove("focus"));
  block.classList.add("focus");
  block.scrollIntoView({ block: "center" });
}

/** Go to the next edit of the request after (or before) the visible one. */
function jumpEdit(element, step) {
  const edits = [...element.querySelectorAll(".block.edit:not(.repaired)")];
  if (!edits.length) return;
  const at = edits.findIndex((edit) => edit.classList.contains("focus"));
  goTo(edits[at < 0 ? (step > 0 ? 0 : edits.length - 1) : (at + step + edits.length) % edits.length]);
}

/** Mark the end of the cached prefix: everything above was read from the cache. */
function cacheBorder(session, call, items) {
  const { read_tokens: read, written_tokens: written, fresh_tokens: fresh } = call.data.simulated;
  if (!read) return null;
  let total = call.layers.tools ?? 0;
  let index = 0;
  while (index < items.length && total + items[index].tokens <= read) total += items[index++].tokens;
  return {
    index,
    element: h("p.border", { role: "separator" },
      h("span", `\u2191 ${number(read)} tokens read from the cache`), h("span", `\u2193 ${number(written + fresh)} tokens new`)),
  };
}

/** Render tools and the body's other fields, collapsed. */
function offered(session, call) {
  const tools = session.raw.tools[call.data.shows.tools] ?? [];
  const fields = Object.entries(session.raw.templates[call.frame.template] ?? {}).filter(([name]) => !["messages", "system", "tools"].includes(name));
  const parts = [];
  if (tools.length) {
    parts.push(lazy(`${plural(tools.length, "tool")}, ${number(call.layers.tools ?? 0)} tokens`, () => tools.map((tool) =>
      h("div.tool", say(h("b"), tool.name), " ", say(h("span"), tool.description ?? ""), tool.schema ? words(JSON.stringify(tool.schema, null, 1), {}) : null))));
  }
  if (fields.length) parts.push(lazy(`other fields: ${fields.map(([name]) => name).join(", ")}`, () => [words(JSON.stringify(Object.fromEntries(fields), null, 1), {})]));
  return h("div.offered", parts);
}

/** Build details whose content is rendered when they are first opened. */
function lazy(title, make, { isOpen = false, name = "" } = {}) {
  const content = h("div.inside");
  const fill = () => !content.childElementCount && content.append(...make());
  const element = h(`details${name ? `.${name}` : ""}`, { ontoggle: () => element.open && fill() }, say(h("summary"), title), content);
  if (isOpen) {
    fill();
    element.open = true;
  }
  return element;
}

function itemBlock(session, call, item, options) {
  const isNew = firstShown(session.entries[item.entry]) === call.position;
  if (item.edit !== null) return editBlock(session, call, item, { ...options, isNew: call.decided.includes(item.edit) });
  const entry = session.entries[item.entry];
  return h(`div.block.${entry.message.role}${isNew ? ".new" : ""}`, { role: "listitem", "data-entry": String(item.entry) },
    gutter(item.entry, item.entry), h("div.said", messageParts(entry.message, options)), weight(item.tokens));
}

function gutter(first, last) {
  return h("span.number", { title: first === last ? "entry of the log" : "entries of the log" }, first === last ? `${first}` : `${first}\u2013${last}`);
}

const weight = (tokens) => h("span.weight", { title: "tokens" }, number(tokens));

/** Render an edit: its replacement, and the entries before it. */
function editBlock(session, call, item, { query, focus, isNew }) {
  const edit = session.edits[item.edit];
  const { first, last } = edit;
  const decided = firstShown(session.edits[item.edit]);
  const at = decided < 0 ? "" : ` at call ${number(session.calls[decided].number)}`;
  const after = sum(edit.tokens);
  const left = edit.messages.flatMap((message) => [...wordsOf(message.pieces)]);
  // A payload that is a message of its own is in the log as it is shown.
  const isSame = edit.kind === "payload" && JSON.stringify(session.entries[last].message.pieces) === JSON.stringify(edit.messages.at(-1)?.pieces);
  const hidden = isSame ? [] : (edit.pointers ?? []).filter((pointer) => edit.record || !left.some((text) => text.includes(pointer) || text.includes(relative(pointer))));
  const kind = !isCompaction(edit) ? "repaired" : edit.forced_tokens ? "forced" : "voluntary";
  const isOpen = focus !== null && first <= focus && focus <= last && (!query || holdsQuery(session, first, last, query));
  const removed = lazy(
    kind === "repaired" ? "as it arrived" : `before: ${plural(last - first + 1, "entry", "entries")}, ${number(sum(session.entries.slice(first, last + 1).map((entry) => entry.tokens)))} tokens as they arrived`,
    () => rawEntries(session, first, last, { query, before: item.edit }), { isOpen, name: "removed" });
  return h(`div.block.edit.${kind}${isNew ? ".new" : ""}`, { role: "listitem", "data-entry": String(first), "data-last": String(last), "data-edit": String(item.edit) },
    gutter(first, last),
    h("div.said",
      h("p.why",
        kind === "repaired" ? null : key("mark", kind),
        h("b", edit.kind), `${at}: `, say(h("span"), edit.reason),
        kind === "repaired" ? null : h("span", `. ${number(edit.tokens_before)} \u2192 ${number(after)} tokens, ${forcedWords(edit, after)}`)),
      edit.messages.length ? edit.messages.map((message, at) => [
        edit.record && at === 1 ? h("p.note", "kept verbatim, after the record:") : null,
        ...(edit.record && !at ? [recordBlock(session, edit, { query })] : messageParts(message, { query }))]) : h("p.nothing", "nothing is shown here now"),
      hidden.length ? h("p.pointers", "kept at ", hidden.map((pointer) => pointerLink(pointer, openPointer))) : null,
      isSame ? null : removed),
    weight(after));
}

function forcedWords(edit, after) {
  const freed = edit.tokens_before - after;
  if (!edit.forced_tokens) return "voluntary";
  return edit.forced_tokens >= freed ? "forced" : `forced for ${number(edit.forced_tokens)} of them`;
}

const holdsQuery = (session, first, last, query) =>
  session.entries.slice(first, last + 1).some((entry) => [...wordsOf(entry.message.pieces)].some((text) => text.search(query) >= 0));

/** Render raw entries; `before` is an edit: earlier edits of each entry are noted. */
function rawEntries(session, first, last, { query = null, before = 0 }) {
  return session.entries.slice(first, last + 1).map((entry, offset) => {
    const index = first + offset;
    const earlier = (session.coverings[index] ?? []).filter((number) => number < before && isCompaction(session.edits[number]));
    const gone = earlier.findIndex((number) => ["dropped", "summarised"].includes(session.edits[number].kind));
    const note = earlier.slice(0, gone < 0 ? earlier.length : gone + 1).map((number) => `${session.edits[number].kind} at call ${session.calls[firstShown(session.edits[number])]?.number}`).join(", ");
    return h(`div.block.raw.${entry.message.role}`, { "data-raw": String(index) },
      gutter(index, index), h("div.said", note ? h("p.note", `already ${note}`) : null, messageParts(entry.message, { query })), weight(entry.tokens));
  });
}

function messageParts(message, { query = null } = {}) {
  const name = message.name ? ` ${message.name}` : "";
  return [say(h("span.role"), `${roleOf(message)}${name}`), ...message.pieces.map((piece) => pieceBlock(piece, query))];
}

function pieceBlock(piece, query, isProse = true) {
  const note = piece.note ? say(h("p.note"), piece.note) : null;
  switch (piece.kind) {
    case "call":
      return h("div.piece.call", say(h("b"), piece.name ?? "", { query }), words(piece.text ?? "", { query }));
    case "result":
      return h(`div.piece.result${piece.is_error ? ".failed" : ""}`,
        piece.name || piece.is_error ? h("p.note", say(h("span"), piece.name ?? "", { query }), piece.is_error ? " (error)" : "") : null,
        (piece.pieces ?? []).map((inner) => pieceBlock(inner, query, false)),
        piece.pieces?.length ? null : h("p.note", "empty"));
    case "text":
      return words(piece.text ?? "", { query, isProse });
    default:
      return h(`div.piece.${piece.kind}`, h("p.note", h("span", piece.kind), piece.name ? say(h("span"), ` ${piece.name}`) : null), note, piece.text ? words(piece.text, { query }) : null);
  }
}

/** Render a text: in full if it is short or matches the search, else its start and a button for the rest. */
function words(text, { query = null, isProse = false }) {
  const element = h(`div.session-text${isProse ? ".prose" : ""}`, { dir: "auto" });
  const end = shortEnd(text);
  if (end >= text.length || (query && text.slice(end).search(query) >= 0)) return say(element, text, { query });
  say(element, text.slice(0, end), { query });
  const rest = h("button.quiet.rest", { type: "button", onclick: () => {
    element.replaceChildren();
    say(element, text, { query });
  } }, `show all ${number(text.length)} characters`);
  element.append("\u2026\n", rest);
  return element;
}

function shortEnd(text) {
  let end = 0;
  for (let lines = 0; lines < LONG_LINES; lines++) {
    const next = text.indexOf("\n", end);
    if (next < 0 || next > LONG_CHARS) return text.length <= LONG_CHARS * 1.3 ? text.length : LONG_CHARS;
    end = next + 1;
  }
  return text.length - end < 120 ? text.length : end;
}
