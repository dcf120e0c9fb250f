// A record: the compacted older rounds, line by line, each with its speaker.

const SPEAKERS = { user: "user", assistant: "assistant", call: "call", files: "files changed", failing: "failing at the end", left_out: "left out" };

/** Render the record of an edit. `query`: words to mark. */
function recordBlock(session, edit, { query = null } = {}) {
  const { record } = edit, { first, last } = record;
  const lines = h("div.lines", { role: "list", tabindex: "0" },
    record.lines.filter(({ kind }) => kind !== "opening").map((line) => recordLine(session, line, query)));
  const summaries = record.lines.filter(({ kind }) => kind === "summary");
  const summary = summaries.flatMap(({ text, mark }) => text.slice(mark).split("\n")).length;
  const kinds = [
    ["", true, "all", ""],
    ["user", record.user.total, "user", toldWords(record.user)],
    ["assistant", summary ? record.assistant.lines : record.assistant.total, "assistant", toldWords(record.assistant)],
    ["call", summary ? record.calls.lines : record.calls.total, plural(record.calls.total, "call"), `in ${plural(record.calls.lines, "line")}`],
    ["summary", summary, "a model's summary", `in ${plural(summary, "line")}`],
  ].filter(([, isThere]) => isThere);
  const filters = h("div.filters", { role: "group", "aria-label": "Show lines of" }, kinds.map(([kind, , name, told]) =>
    h("button.quiet", { type: "button", "data-kind": kind, "aria-pressed": String(!kind), onclick: () => {
      lines.dataset.only = kind;
      for (const button of filters.children) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    } }, name, told ? h("small", ` ${told}`) : null)));
  return h("section.record", { "aria-label": `Record of messages ${first} to ${last}` },
    h("h3", `Record of ${plural(last - first + 1, "message")}`, h("small", ` ${number(record.tokens_before)} tokens shortened to ${number(record.tokens_after)}`)),
    filters, lines,
    lazy("the text as the model reads it", () => [words(recordText(record), { query })], { name: "as-read" }));
}

/** Count the lines of each speaker, the messages they cover, and the complete ones. */
const toldWords = ({ total, lines, whole }) => `${number(lines)} of ${number(total)}${lines > whole ? `, ${number(lines - whole)} shortened` : lines ? ", verbatim" : ""}`;

const recordText = (record) => record.lines.map((line) => line.text).join("\n");

function recordLine(session, { kind, text, mark = 0, entry = -1, is_whole: isWhole = false }, query) {
  const said = text.slice(mark);
  const isSpoken = kind === "user" || kind === "assistant";
  const note = kind === "user" && !isWhole ? h("p.note", "the middle is left out") : null;
  return h("div.line", { role: "listitem", "data-kind": kind },
    entry < 0 ? h("span.number") : entryLink(session, entry, "number"),
    h("span.role", kind === "summary" ? text.slice(0, mark - 2) : SPEAKERS[kind] ?? ""),
    h("div.told", isSpoken || kind === "call" || kind === "summary" ? words(said, { query, isProse: kind !== "call" }) : numbered(session, said, query), note));
}

/** Render a line of the record itself; its entry numbers are links. */
function numbered(session, text, query) {
  const element = h("div.session-text");
  for (const [index, piece] of text.split(/(?<=[( ])#(\d{1,9})(?![^\s),])/).entries()) {
    if (index % 2 && session.entries[piece]) element.append(entryLink(session, Number(piece)));
    else say(element, index % 2 ? `#${piece}` : piece, { query });
  }
  return element;
}

function entryLink(session, entry, kind = "") {
  const address = `artifact://${session.raw.tenant}/${session.raw.name}/log/${entry}`;
  return h(`button.pointer${kind ? `.${kind}` : ""}`, { type: "button", title: address, "aria-label": `Read entry ${entry}`, onclick: () => openPointer(address, session) }, `#${entry}`);
}

/** Describe the records in a request in a sentence; empty without a record. */
function pastWords(session, items) {
  const records = [...new Set(items.map((item) => item.edit))].map((edit) => session.edits[edit]?.record).filter(Boolean);
  const total = (pick) => sum(records.map(pick));
  if (!records.length) return "";
  const messages = plural(total(({ first, last }) => last - first + 1), "message");
  return `${messages} of ${number(total((record) => record.tokens_before))} tokens, shortened to ${number(total((record) => record.tokens_after))} in ${plural(records.length, "record")}`;
}
