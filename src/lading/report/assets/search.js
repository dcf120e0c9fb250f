// Search in all messages, replacements by edits, and the reasons of edits.

const MOST_HITS = 200, SNIPPET = 70;

/** Find the words in all sessions: entries of the log, then edits. */
function findWords(sessions, text) {
  const query = literally(text);
  const hits = [];
  for (const session of sessions) {
    session.entries.forEach((entry, index) => {
      if (hits.length < MOST_HITS) findIn(wordsOf(entry.message.pieces), query, (found) => hits.push({ session, entry: index, edit: null, ...found }));
    });
    session.edits.forEach((edit, index) => {
      if (hits.length >= MOST_HITS) return;
      const texts = [edit.reason, ...edit.messages.flatMap((message) => [...wordsOf(message.pieces)])];
      findIn(texts, query, (found) => hits.push({ session, entry: edit.first, edit: index, ...found }));
    });
  }
  return { hits, query };
}

/** Return the first match in the texts, and the number of matches. */
function findIn(texts, query, tell) {
  let first = null, times = 0;
  for (const text of texts) {
    for (const match of text.matchAll(query)) {
      first ??= { text, index: match.index, length: match[0].length };
      times++;
      if (times > 999) break;
    }
  }
  if (first) tell({ ...first, times });
}

/** Run the search field. `sessions()` returns the sessions, `onJump(session, position, entry, query)` opens a hit. */
function finder({ sessions, current, onJump, onBand }) {
  const field = document.getElementById("query"), panel = document.getElementById("found");
  const list = document.getElementById("hits"), count = document.getElementById("count");
  let timer = 0, chosen = -1, query = null;

  function search() {
    const text = field.value.trim();
    close();
    if (text.length < 2) return;
    const found = findWords(sessions(), text);
    query = found.query;
    const more = found.hits.length >= MOST_HITS ? `the first ${MOST_HITS} places` : plural(found.hits.length, "place");
    count.textContent = found.hits.length ? `${more} in ${plural(new Set(found.hits.map((hit) => hit.session)).size, "session")}` : "Nothing found, neither in the log nor in replacements by edits.";
    list.replaceChildren(...found.hits.map(result));
    panel.hidden = false;
    field.setAttribute("aria-expanded", "true");
    choose(found.hits.length ? 0 : -1);
  }

  function result(hit, index) {
    const { session, entry, edit } = hit;
    const life = lifeOf(session, entry);
    const target = targetOf(hit, life, current());
    const start = Math.max(hit.index - SNIPPET, 0), end = hit.index + hit.length + SNIPPET * 2;
    const snippet = `${start ? "\u2026" : ""}${hit.text.slice(start, end).replace(/\s+/g, " ")}${end < hit.text.length ? "\u2026" : ""}`;
    const what = edit === null ? roleOf(session.entries[entry].message) : `replacement by edit (${session.edits[edit].kind})`;
    const element = h("div.hit", {
      role: "option", id: `hit-${index}`, "aria-selected": "false",
      onclick: () => jump(hit, target), onpointerenter: () => onBand(session, life.whole),
    },
      h("p", h("b", edit === null ? `entry ${entry}` : `edit ${edit}`), ` ${what}`, hit.times > 1 ? ` \u00d7${hit.times}` : "",
        sessions().length > 1 ? say(h("span.of"), ` ${session.raw.name}`) : null,
        h("span.when", whereWords(session, hit, life))),
      say(h("p.snippet", { dir: "auto" }), snippet, { query, onPointer: () => jump(hit, target) }));
    element.jump = () => jump(hit, target);
    return element;
  }

  function jump({ session, entry }, position) {
    close();
    onJump(session, position, entry, query);
  }

  function choose(index) {
    list.children[chosen]?.setAttribute("aria-selected", "false");
    chosen = index;
    const element = list.children[index];
    field.setAttribute("aria-activedescendant", element?.id ?? "");
    if (!element) return;
    element.setAttribute("aria-selected", "true");
    element.scrollIntoView({ block: "nearest" });
  }

  function close() {
    panel.hidden = true;
    chosen = -1;
    field.setAttribute("aria-expanded", "false");
    onBand(null, null);
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  field.addEventListener("focus", () => field.value.trim().length > 1 && panel.hidden && search());
  field.addEventListener("keydown", (event) => {
    const size = list.childElementCount;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === "Escape") {
      close();
      field.blur();
    } else if (event.key === "Enter") {
      if (panel.hidden) search();
      else list.children[chosen]?.jump();
    } else if (event.key in steps && !panel.hidden && size) choose((chosen + steps[event.key] + size) % size);
    else return;
    event.preventDefault();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".finder")) close();
  });
  return {
    focus() {
      field.focus();
      field.select();
    },
  };
}

/** Choose the call to open for a hit: the open one if it shows it, else the last that does. Null: no call does. */
function targetOf({ session, entry, edit }, life, current) {
  const end = session.calls.length - 1;
  if (edit !== null) {
    const decided = firstShown(session.edits[edit]);
    return decided < 0 ? null : decided;
  }
  if (!life.whole) return firstShown(session.entries[entry]) < 0 ? null : firstShown(session.entries[entry]);
  const [first, last] = life.whole;
  const open = current?.session === session ? current.position : null;
  return open !== null && first <= open && open <= last ? open : Math.min(last, end);
}

function whereWords(session, { edit }, life) {
  const numberOf = (position) => number(session.calls[position].number);
  if (edit !== null) return firstShown(session.edits[edit]) < 0 ? "not sent yet" : `since call ${numberOf(firstShown(session.edits[edit]))}`;
  if (!life.whole && life.edit === null) return "in no request";
  const gone = life.edit === null ? "" : `${session.edits[life.edit].kind} at call ${numberOf(firstShown(session.edits[life.edit]))}`;
  if (!life.whole) return `never whole: ${gone}`;
  const [first, last] = life.whole;
  return `${first === last ? `call ${numberOf(first)}` : `calls ${numberOf(first)} to ${numberOf(last)}`}${gone ? `, then ${gone}` : ""}`;
}
