// Pointers: show the raw log entries that an address names, from the report's own data.

/** Open the entries that an address names; a relative address belongs to the session `from`. Nothing is fetched. */
function openPointer(pointer, from = open?.session, query = null) {
  const dialog = document.getElementById("pointed");
  const [item, kind, name, tenant] = pointer.replace("artifact://", "").split("/").reverse();
  const known = [from, ...allSessions()].filter(Boolean);
  const session = known.find(({ raw }) => name === undefined || (raw.tenant === tenant && raw.name === name));
  const [first, last] = (item.match(/^(\d+)(?:-(\d+))?/) ?? []).slice(1).map((digits) => (digits === undefined ? null : Number(digits)));
  const end = Math.min(last ?? first, (session?.entries.length ?? 0) - 1);
  const isThere = session && kind === "log" && first <= end;
  dialog.replaceChildren(
    h("header", h("h2", { id: "pointed-title" }, pointer),
      h("button.quiet", { type: "button", onclick: () => dialog.close() }, "Close")),
    ...(isThere ? [lifeWords(session, first, end, dialog), h("div.messages", rawEntries(session, first, end, { query }))]
      : [h("p", session ? "The log of this session has no such entry." : "The session it belongs to is not in this report.")]),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

/** Shorten an address to the form that models read: without tenant and session. */
const relative = (pointer) => pointer.replace(/^artifact:\/\/[^/]+\/[^/]+\/(?=[^/]+\/)/, "artifact://");

/** Describe the calls that show an entry, and the edit that replaced it. */
function lifeWords(session, first, last, dialog) {
  const life = lifeOf(session, first);
  const go = (position) => h("button.quiet", { type: "button", onclick: () => {
    dialog.close();
    jumpTo(session, position, first, null);
  } }, `call ${number(session.calls[position].number)}`);
  const parts = [h("span", first === last ? "As it arrived, whole. " : `${number(last - first + 1)} entries as they arrived, whole. `)];
  if (life.whole) parts.push(h("span", "Last sent like this with "), go(life.whole[1]));
  if (life.edit !== null) parts.push(h("span", life.whole ? `; ${session.edits[life.edit].kind} since ` : `Never sent like this; ${session.edits[life.edit].kind} since `), go(firstShown(session.edits[life.edit])));
  return h("p.life", parts);
}

document.getElementById("pointed").addEventListener("click", (event) => {
  if (event.target === event.currentTarget) event.currentTarget.close();
});
