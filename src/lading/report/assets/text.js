// Words and numbers. All texts of sessions enter the page here, as text, never as markup.

/** Create an element: h("p.note", {title: "..."}, "text", other). Functions under onX are event listeners. */
function h(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const item of rest) {
    if (item === null || item === undefined || item === false) continue;
    if (item instanceof Node || typeof item === "string") element.append(item);
    else if (Array.isArray(item)) element.append(...item.flat().filter((child) => child));
    else for (const [key, value] of Object.entries(item)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2).toLowerCase(), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
  }
  return element;
}

/** Create an SVG element. */
function v(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const wholeNumbers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const number = (value) => wholeNumbers.format(value);
const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
const percent = (share, digits = 1) => `${(share * 100).toFixed(digits)}%`;

/** Format 31,204 as 31.2k. */
function short(value) {
  const size = Math.abs(value);
  if (size < 999.5) return String(Math.round(value));
  const [unit, letter] = size < 999.5e3 ? [1e3, "k"] : size < 999.5e6 ? [1e6, "M"] : [1e9, "G"];
  const scaled = value / unit;
  return `${Math.abs(scaled) < 10 ? scaled.toFixed(1).replace(/\.0$/, "") : Math.round(scaled)}${letter}`;
}

/** Format an amount in a session's unit: USD, or tokens at the base input price where the model has no price. */
function money(value, session) {
  if (session.unit !== "usd") return `${short(value)} tok`;
  const size = Math.abs(value);
  if (size === 0) return "$0";
  if (size >= 10000) return `$${short(value)}`;
  if (size >= 100) return `$${number(value)}`;
  if (size >= 1) return `$${value.toFixed(2)}`;
  return `$${value.toFixed(size >= 0.1 ? 3 : size >= 0.001 ? 4 : 6)}`;
}

/** Format the round numbers of an axis in that unit. */
const roundMoney = (value, session) => (session.unit === "usd" ? `$${Number(value.toPrecision(3))}` : short(value));

const POINTER = /artifact:\/\/(?:[\w.-]+\/[\w.-]+\/)?(?:log\/\d+(?:-\d+|\.\d+)?|blob\/[0-9a-f]{64})/;
// Characters that are invisible, move a cursor, or change the reading direction of the text around them.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

const matchers = new Map();

/** Pattern for say(): pointers, invisible characters, and the query. */
function matcherFor(query) {
  const name = query?.source ?? "";
  if (!matchers.has(name)) {
    matchers.clear();
    matchers.set(name, new RegExp(`(${POINTER.source})|(${UNSEEN.source})${query ? `|(${name})` : ""}`, query ? "gi" : "g"));
  }
  return matchers.get(name);
}

/** Append text of a session: pointers as links, invisible characters by name, matches of `query` marked. */
function say(element, text, { query = null, onPointer = openPointer } = {}) {
  let end = 0;
  for (const match of text.matchAll(matcherFor(query))) {
    if (!match[0]) continue;
    if (match.index > end) element.append(text.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[1]) element.append(pointerLink(match[1], onPointer));
    else if (match[2]) element.append(h("span.unseen", { title: "an invisible character" }, unseenName(match[2])));
    else element.append(h("mark", match[0]));
  }
  element.append(text.slice(end));
  return element;
}

function pointerLink(address, onPointer) {
  return h("button.pointer", { type: "button", title: "Read the original", onclick: () => onPointer(address) }, address);
}

const CONTROLS = ("NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US").split(" ");

function unseenName(character) {
  const code = character.charCodeAt(0);
  if (code < 0x20) return CONTROLS[code];
  return code === 0x7f ? "DEL" : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Make a pattern that matches the words of a query literally. */
function literally(words) {
  return new RegExp(words.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "gi");
}

/** Return all text of a message for searching, as say() shows it, part by part. */
function* wordsOf(pieces) {
  for (const piece of pieces) {
    if (piece.name) yield piece.name;
    if (piece.text) yield piece.text;
    if (piece.note) yield piece.note;
    if (piece.pieces) yield* wordsOf(piece.pieces);
  }
}

const ROLES = { system: "system", user: "user", assistant: "assistant", tool: "tool result" };

/** Describe the kind of a message in a word or two. */
function roleOf(message) {
  if (holdsResult(message)) return "tool result";
  if (message.role === "assistant" && message.pieces.some((piece) => piece.kind === "call")) return "tool call";
  return ROLES[message.role] ?? message.role;
}
