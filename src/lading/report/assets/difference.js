// Two requests side by side: messages in only one of them, and changed messages line by line.

const CONTEXT_LINES = 2, MOST_CELLS = 4e6;

/** Compare the requests of two calls, message by message: rows of [left, right, isSame], texts or null. */
function requestRows(session, one, other) {
  const pick = (call) => new Map((call.isError ? [] : requestOf(session, call)).map((item) => [item.entry, item]));
  const left = pick(one), right = pick(other);
  const rows = [];
  for (const entry of [...new Set([...left.keys(), ...right.keys()])].sort((a, b) => a - b)) {
    const items = [left.get(entry) ?? null, right.get(entry) ?? null];
    const isSame = items[0] && items[1] && items[0].edit === items[1].edit;
    const [before, after] = items.map((item) => (item ? itemLines(session, item) : []));
    rows.push(...(isSame ? before.map((line) => [line, line, true]) : lineRows(before, after)));
  }
  return rows;
}

function itemLines(session, { entry, edit }) {
  const messages = edit === null ? [session.entries[entry].message] : session.edits[edit].messages;
  return messages.flatMap((message) => [`#${entry} ${roleOf(message)}`, ...[...wordsOf(message.pieces)].flatMap((text) => text.split("\n"))]);
}

/** Align two lists of lines as rows, by their longest common subsequence. */
function lineRows(left, right) {
  let start = 0, ends = 0;
  while (start < Math.min(left.length, right.length) && left[start] === right[start]) start++;
  while (ends < Math.min(left.length, right.length) - start && left.at(-1 - ends) === right.at(-1 - ends)) ends++;
  const before = left.slice(start, left.length - ends), after = right.slice(start, right.length - ends);
  const same = (lines) => lines.map((line) => [line, line, true]);
  return [...same(left.slice(0, start)), ...middleRows(before, after), ...same(left.slice(left.length - ends))];
}

function middleRows(left, right) {
  const width = right.length + 1, rows = [];
  let at = 0, to = 0;
  if (left.length * right.length <= MOST_CELLS) {
    const common = new Uint32Array((left.length + 1) * width);
    for (let i = left.length - 1; i >= 0; i--) {
      for (let j = right.length - 1; j >= 0; j--) {
        common[i * width + j] = left[i] === right[j] ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
      }
    }
    while (at < left.length && to < right.length) {
      if (left[at] === right[to]) rows.push([left[at++], right[to++], true]);
      else if (common[(at + 1) * width + to] >= common[at * width + to + 1]) rows.push([left[at++], null, false]);
      else rows.push([null, right[to++], false]);
    }
  }
  return [...rows, ...left.slice(at).map((line) => [line, null, false]), ...right.slice(to).map((line) => [null, line, false])];
}

/** Render the rows; runs of equal lines are collapsed to their edges. */
function differenceBlock(session, one, other) {
  const rows = requestRows(session, one, other);
  const changed = rows.flatMap(([, , isSame], at) => (isSame ? [] : [at]));
  const shown = new Set(changed.flatMap((at) => Array.from({ length: 2 * CONTEXT_LINES + 1 }, (_, step) => at - CONTEXT_LINES + step)));
  const lines = [];
  let hidden = 0;
  const close = () => hidden && lines.push(h("p.equal", `${plural(hidden, "equal line")}`)) && (hidden = 0);
  rows.forEach(([left, right, isSame], at) => {
    if (!shown.has(at)) return hidden++;
    close();
    const side = (text, kind) => say(h(`span.side${isSame ? "" : text === null ? ".none" : `.${kind}`}`, { dir: "auto" }), text ?? "");
    lines.push(h("div.pair", { role: "row" }, side(left, "gone"), side(right, "added")));
  });
  close();
  const words = changed.length ? `${number(rows.filter(([left, , isSame]) => !isSame && left !== null).length)} lines only in call ${number(one.number)}, ${number(rows.filter(([, right, isSame]) => !isSame && right !== null).length)} only in call ${number(other.number)}` : "both requests show the same messages";
  return h("section.difference", { "aria-label": "Difference" }, h("p.note", words),
    h("div.pair.head", h("b", `call ${number(one.number)}`), h("b", `call ${number(other.number)}`)), lines);
}

/** Build the button and the call number for comparing a request with another one. */
function besideControl(session, call, messages) {
  const place = h("input", { type: "number", min: "1", max: String(session.calls.at(-1).number), value: String(session.calls[Math.max(call.position - 1, 0)].number), "aria-label": "Number of the other call" });
  let raw = null;
  const button = h("button.quiet", { type: "button", "aria-pressed": "false", onclick: () => show(raw === null) }, "side by side with call");
  const show = (isOn) => {
    const other = session.calls.find((item) => item.number === Number(place.value));
    if (isOn && !other) return;
    raw ??= [...messages.childNodes];
    messages.replaceChildren(...(isOn ? [differenceBlock(session, ...[other, call].sort((a, b) => a.position - b.position))] : raw));
    if (!isOn) raw = null;
    button.setAttribute("aria-pressed", String(isOn));
  };
  place.addEventListener("change", () => show(true));
  return [button, place];
}
