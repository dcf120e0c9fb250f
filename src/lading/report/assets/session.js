"use strict";
// A session as the page uses it: what each call shows, its tokens and its cost. Nothing is rendered here.

const NOT_COMPACTIONS = ["repaired", "restated", "pinned", "payload"];
const isCompaction = (edit) => !NOT_COMPACTIONS.includes(edit.kind);

const CLASSES = ["system", "tools", "task", "evidence", "memory", "messages", "results", "stand-ins"];

/** Compute the data of one session for charts, table and search; once, when it is first opened. */
function openSession(raw, index) {
  const session = { raw, index, frames: raw.frames, entries: raw.entries, edits: raw.edits };
  for (const { record, messages } of raw.edits) if (record) messages.unshift({ role: "user", pieces: [{ kind: "text", text: recordText(record) }] });
  session.frame = raw.frames[raw.calls.at(-1)?.shows.frame ?? 0];
  session.isPriced = raw.frames.every((frame) => frame.card.provider !== "unknown" && frame.card.prices.input_usd > 0);
  session.unit = session.isPriced ? "usd" : "tokens";
  session.decided = Array.from(raw.calls, () => []);
  raw.edits.forEach((edit, number) => session.decided[edit.shown?.[0]]?.push(number));
  session.calls = raw.calls.map((data, position) => callOf(session, data, position));
  session.totals = totalsOf(session);
  session.coverings = coverings(raw.edits, raw.entries.length);
  return session;
}

function callOf(session, data, position) {
  const frame = session.frames[data.shows.frame], decided = session.decided[position];
  const compactions = decided.map((edit) => session.edits[edit]).filter(isCompaction);
  const removed = sum(compactions.map((edit) => edit.tokens_before - sum(edit.tokens)));
  const forced = sum(compactions.map((edit) => edit.forced_tokens ?? 0));
  return {
    position, data, frame, decided,
    number: data.call,
    layers: layersOf(data),
    tokens: sum(Object.values(data.layers)),
    // Zero for a request that the caller did not make: everything sent does not include it.
    everything: billedTokens(data.append_only),
    removed, forced,
    voluntary: removed - forced,
    forcedEdits: compactions.filter((edit) => edit.forced_tokens).length,
    voluntaryEdits: compactions.filter((edit) => !edit.forced_tokens).length,
    // A call without a request cost nothing and is not compared.
    cost: costs(data.error ? NO_USAGE : data.simulated, frame, session.isPriced),
    fullCost: costs(data.error ? NO_USAGE : data.append_only, frame, session.isPriced),
    uncachedCost: costs(data.error ? NO_USAGE : { ...NO_USAGE, fresh_tokens: billedTokens(data.append_only) }, frame, session.isPriced),
    ownCost: (data.sent?.own?.cost ?? 0) * (session.isPriced ? frame.card.prices.input_usd / 1e6 : 1),
    reportedCost: data.reported ? reportedCosts(data.reported, frame, session.isPriced) : null,
    recordedCost: data.recorded ? reportedCosts(data.recorded, frame, session.isPriced) : null,
    billedCost: data.reported ?? data.recorded ? reportedCosts(data.reported ?? data.recorded, frame, session.isPriced) : null,
    countError: countError(data),
    isError: Boolean(data.error),
    isRefused: !data.error && !billedTokens(data.simulated),
  };
}

/** Split the conversation layer into messages, tool results, and replacements by edits. */
function layersOf({ layers: { conversation, ...layers }, shows }) {
  const [messages, results, left] = shows.conversation;
  return conversation === undefined ? layers : { ...layers, "stand-ins": left, results, messages };
}

const NO_USAGE = { read_tokens: 0, written_tokens: 0, fresh_tokens: 0 };

/** Return the cost of an input by kind, in USD or in tokens at the base price. */
function costs(usage, frame, isPriced) {
  const factor = isPriced ? frame.card.prices.input_usd / 1e6 : 1;
  const read = usage.read_tokens * frame.rates.read * factor;
  const written = usage.written_tokens * frame.rates.write * factor;
  const fresh = usage.fresh_tokens * factor;
  return { read, written, fresh, total: read + written + fresh };
}

/** Return the same for reported usage; tokens neither read from nor written to the cache are fresh. */
function reportedCosts(reported, frame, isPriced) {
  const usage = {
    read_tokens: reported.read_tokens ?? 0,
    written_tokens: reported.written_tokens ?? 0,
    fresh_tokens: Math.max(reported.input_tokens - (reported.read_tokens ?? 0) - (reported.written_tokens ?? 0), 0),
  };
  return { ...costs(usage, frame, isPriced), usage };
}

/** Return the relative error of the count before a call against the reported one; null: unknown. */
function countError(data) {
  const counted = data.sent?.expected_tokens ?? sum(Object.values(data.layers));
  return data.reported && data.reported.input_tokens > 0 && counted ? counted / data.reported.input_tokens - 1 : null;
}

function totalsOf(session) {
  const { calls } = session;
  const total = (pick) => sum(calls.map(pick));
  const sent = calls.filter((call) => !call.isError);
  const cost = total((call) => call.cost.total), full = total((call) => call.fullCost.total);
  const own = total((call) => call.ownCost);
  const made = sent.filter((call) => call.everything);
  const billable = sent.filter((call) => !call.isRefused);
  const reported = total((call) => (call.reportedCost ? call.data.reported.input_tokens : 0));
  const reportedCost = total((call) => call.reportedCost?.total ?? 0);
  const isReported = billable.length > 0 && billable.every((call) => call.reportedCost);
  return {
    calls: calls.length,
    errors: calls.length - sent.length,
    cost, full, own,
    ratio: full ? (cost + own) / full : 1,
    ownCalls: total((call) => call.data.sent?.own?.calls ?? 0),
    ownTokens: total((call) => (call.data.sent?.own?.input_tokens ?? 0) + (call.data.sent?.own?.output_tokens ?? 0)),
    reportedFull: isReported ? (reportableFull(calls, full) * reported) / (sum(billable.map((call) => call.tokens)) || 1) : null,
    share: sum(made.map((call) => call.tokens)) / (sum(made.map((call) => call.everything)) || 1),
    read: total((call) => call.cost.read),
    written: total((call) => call.cost.written),
    fresh: total((call) => call.cost.fresh),
    readTokens: sum(sent.map((call) => call.data.simulated.read_tokens)),
    writtenTokens: sum(sent.map((call) => call.data.simulated.written_tokens)),
    freshTokens: sum(sent.map((call) => call.data.simulated.fresh_tokens)),
    peak: Math.max(0, ...calls.map((call) => call.tokens)),
    everything: Math.max(0, ...calls.map((call) => call.everything)),
    firstOver: calls.find((call) => call.everything > call.frame.budget.window_tokens)?.number ?? null,
    forcedEdits: total((call) => call.forcedEdits),
    voluntaryEdits: total((call) => call.voluntaryEdits),
    forced: total((call) => call.forced),
    voluntary: total((call) => call.voluntary),
    reported: calls.filter((call) => call.reportedCost).length,
    reportedCost,
    extra: calls.filter((call) => call.data.sent?.cause).length,
    extraCost: total((call) => (call.data.sent?.cause ? call.cost.total : 0)),
    billed: calls.filter((call) => call.billedCost).length,
    errorsOfCount: calls.map((call) => call.countError).filter((error) => error !== null),
  };
}

/** Return everything sent, without a cache where the provider reports none; unknown if nothing could be read. */
function reportableFull(calls, full) {
  const isCached = calls.some(({ reportedCost }) => reportedCost && reportedCost.usage.read_tokens + reportedCost.usage.written_tokens);
  const uncached = sum(calls.map((call) => call.uncachedCost.total));
  if (isCached) return full;
  return calls.some((call) => call.data.simulated.read_tokens) ? uncached : Math.min(full, uncached);
}

/** Return the edits that cover each entry, in order. */
function coverings(edits, length) {
  const found = Array.from({ length }, () => null);
  edits.forEach((edit, number) => {
    for (let entry = edit.first; entry <= edit.last; entry++) (found[entry] ??= []).push(number);
  });
  return found;
}

/** Return the calls that show an entry in full, as positions [first, last], and the edit that ended that; null: none. */
function lifeOf(session, entry) {
  const first = firstShown(session.entries[entry]);
  if (first < 0) return { whole: null, edit: null };
  const edit = session.coverings[entry]?.find((number) => isCompaction(session.edits[number])) ?? null;
  const end = edit === null || firstShown(session.edits[edit]) < 0 ? session.calls.length : firstShown(session.edits[edit]);
  return { whole: end > first ? [first, end - 1] : null, edit: end < session.calls.length || end <= first ? edit : null };
}

/** Return the position of the first call that shows an entry or an edit; -1: none does. */
const firstShown = ({ shown }) => shown?.[0] ?? -1;

/** Return the request of a call in order: raw entries, and edits in their place. */
function requestOf(session, { position }) {
  const isShown = ({ shown: [first, until] = [] }) => first <= position && position < until;
  const items = [
    ...session.entries.flatMap((item, entry) => (isShown(item) ? [{ entry, edit: null, tokens: item.tokens }] : [])),
    ...session.edits.flatMap((item, edit) => (isShown(item) ? [{ entry: item.first, edit, tokens: sum(item.tokens) }] : [])),
  ];
  return items.sort((one, other) => one.entry - other.entry);
}

function holdsResult(message) {
  return message.pieces.some((piece) => piece.kind === "result");
}

function billedTokens(usage) {
  return usage.read_tokens + usage.written_tokens + usage.fresh_tokens;
}

function sum(numbers) {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
