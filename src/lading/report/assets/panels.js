// The panels of a session's charts. Each draws into its box and shows in its heading the values at one call.

const NAMES = { messages: "messages", results: "tool results", "stand-ins": "replaced by edits" };
/** The requests of a replay are not those that were billed. */
const billName = (session) => (session.raw.is_replay ? "recorded bill" : "as billed");
const GLYPHS = { forced: "M0-4 4 0 0 4-4 0Z", voluntary: "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0Z" };

/** Draw tokens per call: layers as areas, everything sent and the window as lines. */
function tokensPanel(session) {
  const present = new Set(session.calls.flatMap((call) => Object.keys(call.layers).filter((name) => call.layers[name])));
  const layers = [...CLASSES.filter((name) => present.has(name)), ...[...present].filter((name) => !CLASSES.includes(name))];
  const windowAt = (position) => session.calls[position].frame.budget.window_tokens;
  const edges = session.calls.map((call) => {
    let total = 0;
    return [0, ...layers.map((name) => (total += call.layers[name] ?? 0))];
  });
  return {
    id: "tokens",
    title: "Tokens per call",
    height: 250,
    hasWhole: true,
    tick: short,
    items: (position) => {
      const call = session.calls[position];
      return [
        ...layers.map((name) => ["area", name, NAMES[name] ?? name, number(call.layers[name] ?? 0)]),
        ["line", "everything", "everything sent", call.everything ? number(call.everything) : "\u2013"],
        ["line", "window", "window", number(windowAt(position))],
      ];
    },
    top(range, isWhole) {
      const calls = session.calls.slice(range[0], range[1] + 1);
      const own = largest(calls, (call) => call.tokens), everything = largest(calls, (call) => call.everything);
      const limit = largest(calls, (call) => call.frame.budget.window_tokens);
      const shownWindow = isWhole || limit <= Math.max(own, everything) * 2.2 ? limit : 0;
      return topOf(Math.max(own, Math.min(shownWindow, limit)), everything, isWhole);
    },
    draw({ scale, y, top }) {
      const parts = layers.map((name, index) =>
        v(`path.area.${name}`, { d: stepArea(scale, (at) => y(edges[at][index + 1]), (at) => y(edges[at][index])) }));
      parts.push(v("path.line.window", { d: line(scale, (at) => (windowAt(at) > top ? null : y(windowAt(at)))) }));
      parts.push(v("path.line.everything", { d: line(scale, (at) => (!session.calls[at].everything || session.calls[at].everything > top ? null : y(session.calls[at].everything))) }));
      return parts;
    },
    labels({ scale, y, top }) {
      const call = session.calls[scale.last];
      const found = layers.filter((name) => call.layers[name] > top * 0.03).map((name) => {
        const index = layers.indexOf(name), [low, high] = [edges[scale.last][index], edges[scale.last][index + 1]];
        return { y: y((low + high) / 2), text: NAMES[name] ?? name, kind: name };
      });
      const limit = windowAt(scale.last);
      found.push({ y: y(limit), text: `window ${short(limit)}${limit > top ? " \u2191" : ""}`, kind: "window" });
      if (call.everything) found.push({ y: y(call.everything), text: `everything sent ${short(call.everything)}${call.everything > top ? " \u2191" : ""}`, kind: "everything" });
      return found;
    },
  };
}

/** Draw the tokens removed by edits at each call below the axis; marks separate forced and voluntary edits. */
function removedPanel(session) {
  return {
    id: "removed",
    title: "Removed by edits",
    height: 34,
    hangs: true,
    tick: short,
    items: (position) => {
      const call = session.calls[position];
      return [
        ["mark", "forced", "forced", number(call.forced)],
        ["mark", "voluntary", "voluntary", number(call.voluntary)],
      ];
    },
    top: (range) => largest(session.calls.slice(range[0], range[1] + 1), (call) => call.removed) * 1.1 || 1,
    draw({ scale, y, box }) {
      const forced = [], voluntary = [], marks = [];
      const width = Math.max(scale.step - (scale.step > 4 ? 1 : 0), 1.5);
      for (let at = scale.first; at <= scale.last; at++) {
        const call = session.calls[at];
        if (!call.forcedEdits && !call.voluntaryEdits) continue;
        const x = scale.middle(at) - width / 2, deep = (amount) => box.y + box.height - y(amount);
        const first = Math.max(deep(call.forced), call.forced ? 1 : 0), second = Math.max(deep(call.voluntary), call.voluntary ? 1 : 0);
        if (first) forced.push(`M${x.toFixed(1)} ${box.y}h${width}v${first.toFixed(1)}h${-width}Z`);
        if (second) voluntary.push(`M${x.toFixed(1)} ${(box.y + first).toFixed(1)}h${width}v${second.toFixed(1)}h${-width}Z`);
        const kind = call.forcedEdits ? "forced" : "voluntary";
        marks.push(v(`path.glyph.${kind}`, { d: GLYPHS[kind], transform: `translate(${scale.middle(at).toFixed(1)} ${box.y - 6})` }));
      }
      return [v("path.bar.voluntary", { d: voluntary.join("") }), v("path.bar.forced", { d: forced.join("") }), ...marks];
    },
  };
}

/** Draw the cost of each call's input, by kind of usage. */
function costPanel(session) {
  const kinds = [["read", "cached read"], ["written", "cache write"], ["fresh", "uncached"]]
    .filter(([kind]) => kind !== "fresh" || session.totals.fresh > 0);
  return {
    id: "cost",
    title: "Cost per call",
    height: 110,
    hasWhole: true,
    tick: (value) => roundMoney(value, session),
    items: (position) => {
      const call = session.calls[position];
      return [
        ...kinds.map(([kind, name]) => ["area", kind, name, money(call.cost[kind], session)]),
        ["line", "everything", "everything sent", call.everything ? money(call.fullCost.total, session) : "\u2013"],
        ...(call.billedCost ? [["line", "reported", billName(session), money(call.billedCost.total, session)]] : []),
      ];
    },
    top(range, isWhole) {
      const calls = session.calls.slice(range[0], range[1] + 1);
      const own = largest(calls, (call) => Math.max(call.cost.total, call.reportedCost?.total ?? 0));
      return topOf(own, largest(calls, (call) => Math.max(call.fullCost.total, call.recordedCost?.total ?? 0)), isWhole);
    },
    draw({ scale, y, top }) {
      let below = () => 0;
      const parts = kinds.map(([kind]) => {
        const low = below, high = (at) => low(at) + session.calls[at].cost[kind];
        below = high;
        return v(`path.area.${kind}`, { d: stepArea(scale, (at) => y(high(at)), (at) => y(low(at))) });
      });
      parts.push(v("path.line.everything", { d: line(scale, (at) => (!session.calls[at].everything || session.calls[at].fullCost.total > top ? null : y(session.calls[at].fullCost.total))) }));
      if (session.totals.billed) {
        const billed = (at) => session.calls[at].billedCost?.total ?? null;
        parts.push(v("path.line.reported", { d: line(scale, (at) => (billed(at) === null ? null : y(Math.min(billed(at), top)))) }));
      }
      return parts;
    },
  };
}

/** Draw the cumulative cost of the session. */
function totalPanel(session) {
  const strategy = session.frame.strategy === "append-only" ? "requests" : session.frame.strategy;
  const sums = (pick) => {
    let total = 0;
    return session.calls.map((call) => (total += pick(call)));
  };
  const own = sums((call) => call.cost.total), full = sums((call) => call.fullCost.total);
  const billed = session.totals.billed ? sums((call) => call.billedCost?.total ?? 0) : null;
  return {
    id: "total",
    title: "Cost in total",
    height: 120,
    tick: (value) => roundMoney(value, session),
    items: (position) => [
      ["area", "own", strategy, money(own[position], session)],
      ["line", "everything", "everything sent", money(full[position], session)],
      ...(billed ? [["line", "reported", billName(session), money(billed[position], session)]] : []),
    ],
    top: (range) => Math.max(own[range[1]], full[range[1]], billed?.[range[1]] ?? 0) * 1.08 || 1,
    draw({ scale, y }) {
      const parts = [v("path.area.own", { d: stepArea(scale, (at) => y(own[at]), () => y(0)) })];
      parts.push(v("path.line.everything", { d: line(scale, (at) => y(full[at])) }));
      if (billed) parts.push(v("path.line.reported", { d: line(scale, (at) => y(billed[at])) }));
      return parts;
    },
    labels: ({ scale, y }) => [
      { y: y(own[scale.last]), text: `${strategy} ${money(own[scale.last], session)}`, kind: "own" },
      { y: y(full[scale.last]), text: `everything sent ${money(full[scale.last], session)}`, kind: "everything" },
      ...(billed ? [{ y: y(billed[scale.last]), text: `${billName(session)} ${money(billed[scale.last], session)}`, kind: "reported" }] : []),
    ],
  };
}

/** Draw the error of counts against reported usage; null where nothing was reported. */
function errorPanel(session) {
  if (!session.totals.errorsOfCount.length) return null;
  // A few of the first calls may be far off; they are drawn at the edge, so that the others stay distinguishable.
  const sizes = session.totals.errorsOfCount.map(Math.abs).sort((one, other) => one - other);
  const bound = Math.max(0.03, sizes[Math.floor(sizes.length * 0.9)] * 1.6);
  return {
    id: "error",
    title: "Counting error",
    height: 70,
    tick: (value) => (value > bound ? `+${percent(value - bound)}` : percent(value - bound)),
    ticks: [0, bound, 2 * bound],
    items: (position) => {
      const error = session.calls[position].countError;
      return [["line", "reported", "counted against reported", error === null ? "not reported" : `${error > 0 ? "+" : ""}${percent(error, 2)}`]];
    },
    top: () => 2 * bound,
    draw({ scale, y }) {
      const dots = [];
      for (let at = scale.first; at <= scale.last; at++) {
        const error = session.calls[at].countError;
        if (error !== null) dots.push(`M${scale.middle(at).toFixed(1)} ${y(error + bound).toFixed(1)}h0`);
      }
      const band = { x: scale.start(scale.first), width: scale.start(scale.last + 1) - scale.start(scale.first) };
      return [
        v("rect.band", { ...band, y: y(bound + 0.025), height: y(bound - 0.025) - y(bound + 0.025) }),
        v("path.dots", { d: dots.join("") }),
      ];
    },
  };
}

/** Mark the calls without a request. */
function missing(session, { scale, box }) {
  return runs(session.calls, scale, (call) => call.isError).flatMap(([first, last]) => {
    const from = scale.start(first), width = Math.max(scale.start(last + 1) - from, 1.5);
    const words = width > 170 ? [v("text.label", { x: from + width / 2, y: box.y + box.height / 2, "text-anchor": "middle" }, "no request could be built")] : [];
    return [v("rect.missing", { x: from, y: box.y, width, height: box.height }, v("title", {}, "no request could be built")), ...words];
  });
}

function largest(items, pick) {
  let found = 0;
  for (const item of items) found = Math.max(found, pick(item));
  return found;
}

/** Find the runs [first, last] of neighbouring calls that pass a test. */
function runs(calls, scale, test) {
  const found = [];
  for (let at = scale.first; at <= scale.last; at++) {
    if (!test(calls[at])) continue;
    if (found.length && found.at(-1)[1] === at - 1) found.at(-1)[1] = at;
    else found.push([at, at]);
  }
  return found;
}
