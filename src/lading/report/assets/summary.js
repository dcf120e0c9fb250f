// The summary of a session: its cost, the saving, and the basis of the figures.

/** Describe a cost relative to everything sent as a headline, such as "62 % cheaper". */
function saving(ratio) {
  const percents = 100 * Math.abs(1 - ratio);
  if (percents < 0.05) return "as expensive";
  if (ratio > 1) return `${percents.toFixed(percents >= 1 ? 0 : 1)} % more expensive`;
  return `${Math.min(percents, 99.9).toFixed(percents >= 1 && percents < 99.5 ? 0 : 1)} % cheaper`;
}

/** Describe the totals of one session or several in a sentence. */
function headline({ calls, errors, ratio, forcedEdits, voluntaryEdits, reportedFull, reportedCost, own }) {
  if (errors) return `${number(errors)} of ${plural(calls, "call")} ${errors === 1 ? "has" : "have"} no request, so the cost cannot be compared.`;
  const gain = forcedEdits + voluntaryEdits > 0 && ratio >= 1 ? " (no gain)" : "";
  const billed = reportedFull ? `, simulated; as billed ${saving((reportedCost + own) / reportedFull)}` : "";
  return `${saving(ratio)} ${saving(ratio) === "as expensive" ? "as" : "than"} everything sent${gain}${billed}.`;
}

function summary(session) {
  const { raw, totals, frame } = session;
  const facts = frame ? [
    frame.card.name, `window ${number(frame.budget.window_tokens)}`, frame.strategy, `provider format ${frame.wire}`,
    `counted by ${frame.counter}${frame.multiplier === 1 ? "" : ` \u00d7 ${frame.multiplier}`}`,
    raw.is_replay ? "a replay of a recording" : "requests that were sent",
  ] : [];
  return h("section.summary",
    say(h("h1"), raw.name),
    say(h("p.facts"), [raw.source, ...facts].filter(Boolean).join(" \u00b7 ")),
    ...(totals.calls ? [h("p.verdict", verdict(session)), figures(session)] : [h("p.verdict", "No request was made in this session. Its log:")]));
}

/** Write the summary in one sentence or two. */
function verdict(session) {
  const { totals, frame } = session;
  const edits = totals.forcedEdits + totals.voluntaryEdits;
  const said = [`${frame.strategy}: ${headline(totals)}`];
  const hasSteps = session.calls.some((call) => call.data.sent?.step);
  if (!edits && !totals.errors) said.push(`Nothing was removed: each request is the whole history so far${hasSteps ? " and the payloads of its steps" : ""}.`);
  if (hasSteps) said.push("Payloads of steps are no part of everything sent.");
  if (edits) said.push(`Its requests hold ${percent(totals.share, 0)} of the tokens.`);
  if (totals.firstOver !== null) said.push(`Everything sent would not have fit the window from call ${number(totals.firstOver)} on.`);
  return said.join(" ");
}

function figures(session) {
  const { totals, frame } = session;
  const off = totals.errorsOfCount.map(Math.abs).sort((one, other) => one - other);
  return h("dl.figures",
    figure("cost of input", money(totals.cost, session), `everything sent ${money(totals.full, session)}; simulated at ${session.isPriced ? "list prices" : "relative prices, in base input tokens"}${totals.errors ? "; without the calls that have no request" : ""}`),
    figure("by kind", "", h("table.split", [
      ["cached read", totals.read, totals.readTokens], ["cache write", totals.written, totals.writtenTokens], ["uncached", totals.fresh, totals.freshTokens],
    ].filter(([name, , tokens]) => tokens || name !== "uncached").map(([name, cost, tokens]) => h("tr", h("th", { scope: "row" }, name), h("td", money(cost, session)), h("td", `${short(tokens)} tok`)))
      .concat(totals.extra ? h("tr", h("th", { scope: "row" }, "of it to restore, retry"), h("td", money(totals.extraCost, session)), h("td", plural(totals.extra, "call"))) : [])
      .concat(h("tr", h("th", { scope: "row" }, "compaction's own"), ...(totals.ownCalls
        ? [h("td", { title: "cost of compaction's own model calls, in addition to the cost of input" }, money(totals.own, session)), h("td", `${short(totals.ownTokens)} tok`)]
        : [h("td", { colspan: "2", title: "cost of compaction's own model calls" }, "none")]))))),
    totals.reported ? figure("as billed", money(totals.reportedCost, session), `reported for ${plural(totals.reported, "call")}, input only${totals.reportedFull ? `; everything sent, simulated, in billed tokens: ${money(totals.reportedFull, session)}` : ""}`) : null,
    figure("largest request", number(totals.peak), `${percent(totals.peak / frame.budget.window_tokens, 0)} of the window; everything sent ${short(totals.everything)}`),
    figure("edits", number(totals.forcedEdits + totals.voluntaryEdits), h("span",
      key("mark", "forced"), `${number(totals.forcedEdits)} forced, `, key("mark", "voluntary"), `${number(totals.voluntaryEdits)} voluntary`, h("br"), `${short(totals.forced)} forced, ${short(totals.voluntary)} voluntary tokens removed`)),
    figure("counting error", off.length ? percent(off[Math.floor(off.length / 2)], 2) : "unknown",
      off.length ? `median of ${plural(off.length, "call")}; 95% within ${percent(off[Math.min(Math.floor(off.length * 0.95), off.length - 1)], 2)}` : "no usage was reported for these requests"),
    session.raw.bill ? recordedFigure(session) : null,
  );
}

/** Render the bill of the recorded run, and why the simulated ones differ. Each row adds to the one above. */
function recordedFigure(session) {
  const { bill, bill_words: words } = session.raw;
  const simulated = Object.entries(bill.simulated);
  const signed = (cost) => `${cost < 0 ? "\u2212" : "+"}${money(Math.abs(cost), session)}`;
  const row = (name, cost, tokens) => h("tr", h("th", { scope: "row" }, name), h("td", cost), h("td", tokens));
  const parts = bill.differences.map((part, at) => [part, words[at]]).filter(([part]) => part.tokens || Math.abs(part.cost) > 1e-9);
  const paid = bill.paid[0] ? `; paid with output ${money(bill.paid[1], session)}, it says` : "";
  return h("div.made.bill", h("dt", "as billed in the recorded run"), h("dd", h("b", money(bill.recorded.cost, session)),
    h("small", `input of ${plural(bill.calls, "call")} at the same prices${paid}. Simulated with the provider's counts and unrecorded content: ${simulated.map(([name, one]) => `${name === "append-only" ? "everything sent" : name} ${money(one.scaled_cost, session)}`).join(", ")}.`),
    h("details", h("summary", `Why ${money(bill.recorded.cost, session)} and not ${money(simulated[0][1].cost, session)}`),
      h("table.split", row("everything sent, simulated", money(simulated[0][1].cost, session), `${short(simulated[0][1].input.read_tokens + simulated[0][1].input.written_tokens + simulated[0][1].input.fresh_tokens)} tok`),
        parts.map(([part, said]) => row(said, signed(part.cost), part.tokens ? `${short(part.tokens)} tok` : "")),
        row("as billed", money(bill.recorded.cost, session), "")))));
}

function figure(name, value, note) {
  return h(`div${value ? "" : ".made"}`, h("dt", name), h("dd", value ? h("b", value) : null, typeof note === "string" ? h("small", note) : note));
}

/** Describe the basis of the simulated figures, and the keys. */
function notes(session) {
  const { frame } = session;
  const { card, rates } = frame;
  const price = session.isPriced ? `$${card.prices.input_usd} per million input tokens` : "no price is known; figures are in tokens at the base price";
  const cache = frame.cache_ttl_s === null ? "assumed to be always warm" : `cold after ${number(frame.cache_ttl_s)} s`;
  return h("footer.notes",
    say(h("p"), `Simulated: ${card.name}${card.as_of ? ` as of ${card.as_of}` : ""}, ${price}; cached read \u00d7${rates.read}, cache write \u00d7${rates.write}, the cache ${cache}, prefixes from ${number(card.cache.min_prefix_tokens)} tokens on. Input only. Everything sent: the whole history at each call that the caller made, in a window without end; requests to restore or retry are no part of it.`),
    h("p", "Forced: without it the request would not have fit. What an edit removes beyond that is voluntary. In a request, a blue edge marks messages that the previous call did not have."),
    h("p.keys", [["/", "search"], ["j k", "next, previous call"], ["n p", "next, previous call with edits"], ["[ ]", "edits of the request"]].flatMap(([keys, what]) => [h("kbd", keys), ` ${what}  `]), "Drag over a chart to zoom into a range of calls; double-click to show all."));
}
