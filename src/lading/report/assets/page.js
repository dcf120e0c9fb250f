// The page: the open session and call, their address after #, and the keys.

const report = JSON.parse(document.getElementById("data").textContent);
const opened = new Map();
const main = document.getElementById("main");
let open = null;

/** Return a session by its position in the report. */
function sessionAt(index) {
  if (!opened.has(index)) opened.set(index, openSession(report.sessions[index], index));
  return opened.get(index);
}

const allSessions = () => report.sessions.map((_, index) => sessionAt(index));

/** Show what the address after # names: nothing (the overview), a session, a call, or an entry in a call. */
function route() {
  const [index, call, entry] = location.hash.slice(1).split("/").map((piece) => (/^\d+$/.test(piece) ? Number(piece) : null));
  const wanted = index ?? (report.sessions.length === 1 ? 0 : null);
  if (wanted === null || !report.sessions[wanted]) return showOverview();
  if (open?.session.index !== wanted) showSession(sessionAt(wanted));
  const position = open.session.calls.findIndex((item) => item.number === call);
  if (position >= 0) showCall(position, { focus: entry ?? null });
}

function address(session, position, entry = null) {
  const pieces = [session.index, ...(position === null ? [] : [session.calls[position].number]), ...(entry === null ? [] : [entry])];
  return `#${pieces.join("/")}`;
}

/** Open a call of the open session, and write it into the address. */
function selectCall(position, options = {}) {
  history.replaceState(null, "", address(open.session, position, options.focus ?? null));
  showCall(position, options);
}

function showCall(position, options = {}) {
  open.position = position;
  open.chart.select(position);
  open.table.select(position);
  showRequest(open.request, open.session, open.session.calls[position], options);
  const isFarDown = (options.focus ?? null) === null && open.request.getBoundingClientRect().top < 0;
  if (isFarDown) open.request.scrollIntoView();
}

function jumpTo(session, position, entry, query) {
  if (position === null) return openPointer(`artifact://${session.raw.tenant}/${session.raw.name}/log/${entry}`, session, query);
  if (open?.session !== session) {
    history.pushState(null, "", address(session, position, entry));
    showSession(session);
  }
  selectCall(position, { focus: entry, query });
}

function showOverview() {
  open = null;
  document.body.dataset.view = "overview";
  path();
  const sessions = allSessions(), sums = sumsOf(sessions);
  main.replaceChildren(
    h("h1", plural(sessions.length, "session")),
    ...sums.map(([strategy, , totals]) => say(h("p.verdict"), `${strategy}: ${headline(totals)}`)),
    h("p.lead", "What the model saw at each call, what was removed from the request, and what it cost. Simulated at list prices unless marked as billed."),
    h("div.scroll", h("table.overview",
      h("thead", h("tr", ["session", "strategy", "model", "calls", "tokens per call", "peak", "of everything", "cost", "everything sent", "forced", "voluntary", "no request"]
        .map((name, index) => h(`th${index > 2 && index !== 4 ? ".n" : ""}${MINOR.includes(index) ? ".minor" : ""}`, { scope: "col" }, name)))),
      h("tbody", sessions.map(overviewRow)),
      h("tfoot", sums.map(overviewSum)))));
  main.focus({ preventScroll: true });
}

/** Columns left out on narrow screens. */
const MINOR = [2, 3, 4, 5, 6, 9, 10, 11];

/** For each strategy, a session with its unit, and the totals of its sessions if all have that unit. */
function sumsOf(sessions) {
  const called = sessions.filter((session) => session.totals.calls);
  const strategies = [...new Set(called.map((session) => session.frame.strategy))];
  return strategies.flatMap((strategy) => {
    const found = called.filter((session) => session.frame.strategy === strategy);
    if (new Set(found.map((session) => session.unit)).size > 1) return [];
    const total = (name) => sum(found.map((session) => session.totals[name]));
    const totals = Object.fromEntries(["calls", "errors", "cost", "own", "full", "forcedEdits", "voluntaryEdits"].map((name) => [name, total(name)]));
    totals.ratio = totals.full ? (totals.cost + totals.own) / totals.full : 1;
    const isReported = found.every((session) => session.totals.reportedFull !== null);
    totals.reportedFull = isReported ? total("reportedFull") : null;
    totals.reportedCost = total("reportedCost");
    return [[strategy, found[0], totals]];
  });
}

function overviewRow(session) {
  const { totals, raw } = session;
  const figures = totals.calls ? [
    h("td.minor", sparkline(session)), n(number(totals.peak), true), n(percent(totals.share), true), ...costCells(totals, session),
  ] : [h("td", { colspan: "8" }, "no request was made")];
  return h(`tr${totals.errors ? ".failed" : ""}`, h("td", say(h("a", { href: `#${session.index}` }), raw.name)), say(h("td"), session.frame?.strategy ?? ""),
    say(h("td.minor.model"), session.frame?.card.name ?? ""), n(number(totals.calls), true), figures);
}

function overviewSum([strategy, session, totals]) {
  return h("tr", h("td", "total"), say(h("td"), strategy), h("td.minor"), n(number(totals.calls), true), h("td.minor"), h("td.minor"), h("td.minor"), costCells(totals, session));
}

/** Describe the cost relative to everything sent; no comparison where a call has no request. */
function costCells(totals, session) {
  return [
    h("td.n", `${money(totals.cost, session)} `, h("small", totals.errors ? `${number(totals.errors)} failed` : saving(totals.ratio))), n(money(totals.full, session)),
    n(number(totals.forcedEdits), true), n(number(totals.voluntaryEdits), true), n(number(totals.errors), true),
  ];
}

const n = (text, isMinor = false) => h(`td.n${isMinor ? ".minor" : ""}`, text);

function showSession(session) {
  document.body.dataset.view = "session";
  const request = h("section.request", { "aria-label": "Request" });
  open = { session, request, position: null };
  path();
  if (!session.calls.length) {
    open.chart = open.table = { select() {}, mark() {}, within() {} };
    main.replaceChildren(summary(session), h("section.request", h("div.messages", rawEntries(session, 0, session.entries.length - 1, {}))));
    return;
  }
  open.chart = sessionChart(session, { onSelect: (position) => selectCall(position), onRange: (range) => open.table.within(range) });
  open.table = callsTable(session, { onSelect: (position) => selectCall(position) });
  main.replaceChildren(summary(session), open.chart.element, h("div.lower", open.table.element, request), notes(session));
  open.chart.draw();
  open.table.draw();
  main.focus({ preventScroll: true });
  const edited = session.calls.findIndex((call) => call.removed > 0);
  showCall(edited < 0 ? session.calls.length - 1 : edited);
}

function path() {
  const strategies = new Set(report.sessions.filter((raw) => raw.name === open?.session.raw.name).map((raw) => raw.frames[0]?.strategy));
  document.getElementById("path").replaceChildren(
    h("b", "Lading"), ...(report.sessions.length > 1 ? [h("a", { href: "#" }, "all sessions")] : []),
    ...(open ? [say(h("span.here"), `${open.session.raw.name}${strategies.size > 1 ? ` (${open.session.frame?.strategy})` : ""}`)] : []));
}

function onKey(event) {
  if (event.target.matches("input, textarea, select") || event.altKey || event.ctrlKey || event.metaKey) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "/") search.focus();
  else if (!open || open.position === null) return;
  else if (event.key === "]" || event.key === "[") jumpEdit(open.request, event.key === "]" ? 1 : -1);
  else {
    const last = open.session.calls.length - 1;
    const moves = { j: 1, k: -1, ArrowRight: 1, ArrowLeft: -1 };
    const found = event.key in moves ? Math.min(Math.max(open.position + moves[event.key], 0), last)
      : event.key === "n" || event.key === "p" ? open.table.nextEdited(open.position, event.key === "n" ? 1 : -1) : null;
    if (found === null) return;
    selectCall(found);
  }
  event.preventDefault();
}

function themes() {
  const button = document.getElementById("theme"), names = ["auto", "light", "dark"];
  let at = 0;
  const apply = () => {
    button.textContent = names[at];
    button.setAttribute("aria-label", `Colours: ${names[at]}`);
    document.documentElement.dataset.theme = names[at];
  };
  button.addEventListener("click", () => {
    at = (at + 1) % names.length;
    apply();
  });
  apply();
}

const search = finder({
  sessions: allSessions,
  current: () => open,
  onJump: jumpTo,
  onBand: (session, range) => open?.chart.mark(session && session === open.session ? range : null),
});
themes();
document.addEventListener("keydown", onKey);
addEventListener("hashchange", route);
route();
