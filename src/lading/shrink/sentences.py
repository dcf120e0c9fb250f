"""Split prose of agents and users into verbatim sentences: text in any language, full of code and Markdown.

Text is split into lines first: a heading, a list item, a table row and a fenced block are units. The rest is split
at sentence ends. A stop inside a word, a code span, a quotation or brackets does not end a sentence, nor does the
stop of an abbreviation, an initial or a list number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Kind = Literal["sentence", "heading", "item", "row", "code", "rule"]
LONG_ITEM_CHARS = 240
"""Longer list items are split into sentences."""
LABEL_CHARS = 40
"""Maximum length of a label, a line that ends with a colon and belongs to the next unit."""
LABELLED_CHARS = 160
"""Maximum length of a unit that a label is joined to."""
WRAP_CHARS = range(60, 121)
"""Line lengths at which a line break wraps a sentence; other line breaks end a unit."""

_FENCE = re.compile(r"[ \t>]*(?:(`{3,})[^`]*|(~{3,}).*)\Z")
_LINES: dict[Kind, re.Pattern[str]] = {
    "code": _FENCE,
    "row": re.compile(r"[ \t>]*\|"),
    "heading": re.compile(r"[ \t>]*(?:#{1,6}[ \t]|\*\*[^*]{0,99}[^*.!?]\*\*:?\s*\Z)"),
    "item": re.compile(r"[ \t>]*(?:[-*+•‣▪◦–][ \t]|\d{1,3}[.)][ \t]|[a-zA-Z]\)[ \t]|\[[ xX]\][ \t])"),
}
_NO_PROSE = re.compile(r"[ \t>]*[`~|#*+•‣▪◦–\[\d-]|[ \t>]*[a-zA-Z]\)")
"""Lines of any other start are prose."""
_WORD = re.compile(r"\w")
_BLANKS = re.compile(r"\s*")
_CLOSERS = "\"'”’“»›)]*_」』）】"
_OPENERS = "\"'“‘„«([*_`「"
_WIDE = "。！？｡।॥۔።။។"
_STOPS = frozenset(".!?…؟" + _WIDE)
_TOKEN = re.compile(
    r"(?<!`)(?P<code>`{1,3})(?!`)[^`]{1,400}+(?P=code)(?!`)"
    r"|(?P<span>(?<!\w)\"(?!\s)[^\"]{1,300}+(?<!\s)\"(?!\w)|(?<!\w)'(?!\s)[^']{1,200}+(?<!\s)'(?!\w)"
    r"|“[^“”]{1,300}+”|„[^„“”]{1,300}+[“”]|«[^«»]{1,300}+»|「[^「」]{1,300}+」|『[^『』]{1,300}+』"
    r"|（[^（）]{1,300}+）|(?<!\*)\*\*(?=\S)[^*]{1,300}+\*\*"
    r"|\([^()]{0,300}+(?:\([^()]{0,100}+\)[^()]{0,300}+){0,4}+\)|\[[^\[\]]{2,300}+\])"
    rf"|(?P<stop>[.!?…؟{_WIDE}]+)(?:[{re.escape(_CLOSERS)}]|\[\d{{1,3}}\]){{0,8}}+"
)
_MARK = re.compile(rf"[`\"'“„«「『（*(\[.!?…؟{_WIDE}]")
_NEXT = re.compile(r"\s+[\"'“‘„«(\[*_`「]*(\S{0,40})")
_NO_START = ",;:=&|)]}…—–-→/%"
_NAME = re.compile(r".*[._/(\d@A-Z]")
_ACRONYM = re.compile(r"[^\W\d_]|(?:[A-Z]\.)+[A-Z]")
_ORDINAL = re.compile(
    r"(?:\b(?:am|der|die|das|dem|den|des|vom|zum|zur|im|bis|seit|jede[rs]?)\s+)\d{1,2}\Z", re.IGNORECASE
)
_MONTH = re.compile(r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b")
_MARKER = re.compile(r"(?:\A\s*\(?\d{1,2}|:\s+1|\(\d{1,2})\Z")


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER = _split(
    "e.g i.e eg ie vs cf viz al approx ca incl excl resp esp avg govt Dr Mr Mrs Ms Prof Sr Jr St Mt Gen "
    "Hon Rev Mme Mlle Sra Srta Uds p.ex z.B d.h u.a i.d.R o.ä bzw bzgl ggf evtl inkl exkl vgl sog zzgl т.е т.к см"
)
_BEFORE_NUMBERS = _split("no nos nr fig figs sec sect ch chap eq eqs vol pp art abs ver tab стр рис гл")
_LISTS_END = _split("etc usw т.д т.п др")
_AMBIGUOUS = _split("a.m p.m inc ltd corp co llc max min mind std est dept misc prev orig temp conf ref refs alt")
_STARTERS = _split(
    "The This That These Those Then There It I I'll I've I'm We We'll We've You Your Our My He She They If When "
    "While After Before Now Next So But And Or In On At For From To With As No Not Yes All Both Each Once Since "
    "Because However Also Please Let Here What Why How Which Who Should Would Could Can Do Does Did Is Are Was Use "
    "Der Die Das Ich Wir Es Danach Dann Le La Les Il Elle Je Nous"
)


class TextUnit(Struct, frozen=True):
    """A sentence or another part of a text that is kept or left out as a whole."""

    text: str
    """The verbatim text without white space at both ends."""
    start: int
    """Index of its first character in the whole text."""
    kind: Kind

    @property
    def end(self) -> int:
        """Index after its last character in the whole text."""
        return self.start + len(self.text)


def split_units(text: str) -> Iterator[TextUnit]:
    """Split a text into its units, in order. Linear in the length of the text."""
    label: TextUnit | None = None
    for unit in _split_unlabelled(text):
        if label is not None:
            if unit.kind in ("sentence", "item") and len(unit.text) <= LABELLED_CHARS:
                unit = replace(unit, text=text[label.start : unit.end], start=label.start)
            else:
                yield label
            label = None
        if _is_label(unit):
            label = unit
        else:
            yield unit
    if label is not None:
        yield label


def _is_label(unit: TextUnit) -> bool:
    is_short = unit.kind in ("sentence", "heading") and len(unit.text) <= LABEL_CHARS
    return is_short and unit.text.rstrip("*_ ").endswith((":", "："))


def _split_unlabelled(text: str) -> Iterator[TextUnit]:
    for start, end, kind in _split_blocks(text):
        is_prose = kind == "sentence" or (kind == "item" and end - start > LONG_ITEM_CHARS)
        for first, last in _split_sentences(text, start, end) if is_prose else [(start, end)]:
            has_words = kind == "code" or _WORD.search(text, first, last)
            yield TextUnit(text[first:last], first, kind if has_words else "rule")


def _split_blocks(text: str) -> Iterator[tuple[int, int, Kind]]:
    """Yield start, end and kind of each run of lines that belong together, without white space at both ends."""
    start = end = at = 0
    kind: Kind | None = None
    fence = previous = ""
    for line in text.split("\n"):
        words = line.strip()
        first = at + len(line) - len(line.lstrip())
        at += len(line) + 1
        if fence:
            end = first + len(words) if words else end
            if words.lstrip("> \t").startswith(fence) and not words.strip(f"> \t{fence[0]}"):
                fence = ""
            continue
        found = _classify_line(line) if words else None
        goes_on = found == "sentence" and kind in ("sentence", "item") and _is_wrapped(previous, words)
        if kind is not None and not goes_on:
            yield start, end, kind
        if found and not goes_on:
            start, kind = first, found
        elif not found:
            kind = None
        if found:
            end, previous = first + len(words), words
        if found == "code" and (opening := _FENCE.match(line)):
            fence = opening[1] or opening[2]
    if kind is not None:
        yield start, end, kind


def _classify_line(line: str) -> Kind:
    if _NO_PROSE.match(line):
        for kind, pattern in _LINES.items():
            if pattern.match(line):
                return kind
    return "sentence"


def _is_wrapped(previous: str, line: str) -> bool:
    """Whether a line continues the previous one: that is about as long as a wrapped line, and is not a label."""
    return len(previous) + len(line.split(maxsplit=1)[0]) in WRAP_CHARS and previous[-1] not in ":："


def _split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence of a block. A piece without words belongs to the sentence before."""
    held: tuple[int, int] | None = None
    for first, last in _split_pieces(text, start, end):
        if held is None or _WORD.search(text, first, last):
            if held is not None:
                yield held
            held = first, last
        else:
            held = held[0], last
    if held is not None:
        yield held


def _split_pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    while mark := _MARK.search(text, at, end):
        token = _TOKEN.match(text, mark.start(), end)
        at = after = token.end() if token else mark.end()
        if token is None:
            continue
        if token["stop"]:
            is_end = _is_sentence_end(text, start, token=token, end=end)
        else:
            inner = (token["span"] or "").rstrip(_CLOSERS)
            is_end = inner[-1:] in _STOPS and _is_sentence_start(_NEXT.match(text, after, end))
        if is_end and after < end:
            yield start, after
            start = after + len(_BLANKS.match(text, after, end)[0])  # type: ignore[index]
    yield start, end


def _is_sentence_end(text: str, start: int, *, token: re.Match[str], end: int) -> bool:
    """Whether a sentence that starts at ``start`` ends with the stop of the token."""
    stop, at, after = token["stop"], token.start(), token.end()
    if stop[0] in _WIDE:
        return True
    following = _NEXT.match(text, after, end)
    if following is None or following[1][:1] in _NO_START:
        return False
    lower = following[1][:1].islower()
    if at > start and text[at - 1].isspace():
        return not lower
    if stop != ".":
        return not lower or (stop[-1] in "!?" and after == token.end("stop"))
    before = text[max(start, at - 30) : at]
    last = before.split()[-1].lstrip(_OPENERS) if before.strip() else ""
    if _MARKER.search(before) or not _can_end(before, last, following[1]):
        return False
    if not lower or _NAME.match(following[1].rstrip(".,:;)")):
        return True
    # The next word is in lower case: the writer uses no capitals, or the word before is not an abbreviation.
    return text[start].islower() or not last[-1:].isalnum() or (len(last) > 3 and last.isalpha())


def _can_end(before: str, last: str, following: str) -> bool:
    """Whether the word before a stop can end a sentence: it is not an abbreviation, initial or ordinal here."""
    small = last[:1].lower() + last[1:]
    if last in _NEVER or small in _NEVER:
        return False
    if small in _BEFORE_NUMBERS:
        return not following[:1].isdigit()
    if small in _LISTS_END:
        return not following[:1].islower()
    if small in _AMBIGUOUS or _ACRONYM.fullmatch(last):
        return following.rstrip(",.:!") in _STARTERS
    return not last.isdigit() or not (_ORDINAL.search(before) or _MONTH.match(following))


def _is_sentence_start(following: re.Match[str] | None) -> bool:
    return following is not None and not (following[1][:1] in _NO_START or following[1][:1].islower())
