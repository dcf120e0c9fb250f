"""Select the sentences of an assistant's message that a later reader needs: verbatim, in order, within a budget.

Causes, decisions, results, open ends and values that cannot be read again come first, then the first and the last
sentence, politeness last. The cues are English; position, length and values work in every language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

from lading.shrink.sentences import TextUnit, split_units

Label = Literal["cause", "decision", "result", "open", "hypothesis", "filler"]
GAP = " … "
"""Marks left-out text between two sentences."""
MOST_VALUES = 4
"""Further values of a sentence do not raise its score."""
LONG_BYTES = 120
"""Longer sentences get no higher score for their length. In bytes, since a word of Chinese has fewer characters."""
SCORES: dict[str, float] = {"cause": 3.0, "decision": 3.0, "result": 2.5, "open": 1.5, "value": 0.6, "edge": 1.5}
KIND_SCORES = {"sentence": 1.0, "item": 1.0, "row": 0.8, "heading": 0.3, "code": 0.2, "rule": 0.0}


def _compile_cue(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b")


def _compile_opening(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{'|'.join(patterns)})\b")


_CUES: dict[Label, re.Pattern[str]] = {
    "cause": _compile_cue(
        "because|due to|root cause|caused? by|turns? out|turned out|(?:that|this) is why|that's why",
        "the (?:actual |real |main |underlying )?(?:issue|problem|bug|culprit|reason|cause|error)"
        " (?:is|was|occurs|comes|lies|here)",
        "stems from|explains why|which (?:explains|causes|breaks)|since (?:it|this|that|the|there|these|they|we|i)",
    ),
    "decision": _compile_cue(
        "decided|decision|chose|chosen|opted|go(?:ing)? with|settled on|in favou?r of|on purpose|by design",
        r"(?:i|we|use[sd]?|using|switched)\b.{1,80}\b(?:instead of|rather than)",
        "i (?:used|kept|left|skipped|dropped)|(?:i|we)(?:'ll| will) (?:use|keep|leave|skip|drop)",
    ),
    "result": _compile_cue(
        "(?<! be )(?:fixed|added|removed|deleted|created|implemented|updated|changed|replaced|renamed|moved|merged"
        "|refactored|resolved|completed|verified|confirmed|found|cancel+ed|booked|refunded|issued|deployed"
        "|committed|published|installed|reproduced)",
        "pass(?:es|ed)|fail(?:s|ed)|works|worked|succeeded|successfully|no longer|(?:is|are) now",
        "now (?:is|are|has|have|uses?)|(?:fell|rose|dropped|went|reduced|increased) (?:from|to|by)",
    ),
    "open": _compile_cue(
        "next steps?|next (?:i|we)|next(?=[,:])|todo(?=[:(])|fixme|still|remain(?:s|ing)?|not yet|unresolved",
        "pending|follow-up|(?:i|we)(?:'ll| will)|needs? to|ha(?:ve|s) to|must|please (?:confirm|provide|send)",
        "let me know (?:your|which|what|whether|when)",
    ),
    "hypothesis": _compile_cue(
        "might|maybe|perhaps|probably|possibly|likely|presumably|not sure|seems?|appears?|(?:looks|sounds) like",
        "(?:could|may) (?:be|have|not)|i (?:think|believe|suspect|guess|assume)|suggest(?:s|ed)?|propose|recommend",
        r"(?:i|we|you|it|this|that) (?:could|would)|\Aif",
        "should (?:now |also )?(?:fix|work|resolve|pass|help|solve|eliminate|prevent)",
    ),
}
_POLITE = _compile_opening(
    "(?:please )?let me know (?:if|how|should)|feel free|is there anything|i hope",
    "if you (?:have|need) (?:any|further|more)|if there(?:'s| is) anything|have a (?:great|good|nice)",
    "thank(?:s| you)|you're welcome|happy to help",
    "(?:that's a )?(?:great|good|excellent) (?:question|idea)",
)
_FILLER = _compile_opening(
    "(?:(?:now|first|next|then|ok|okay|so|but|wait),? )?(?:let me(?! know)|let's|i need to (?:see|look|check)"
    "|i(?:'ll| will) (?:help|start|begin|check|look|take|read|examine|explore|search|run|now|try|assist))",
    "i (?:can|would be happy to) (?:help|assist)",
    "perfect|great|good|nice|excellent|awesome|sure|of course|absolutely|certainly|ok|okay|alright|done|aha?",
    "you're (?:absolutely )?right|(?:i'm )?sorry|i apologi[sz]e|got it|understood|now i (?:understand|see)",
    "here (?:is|are)|here's",
)
_VALUE = re.compile(
    r"https?://[^\s)>\]\"'`]{3,}|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.\w{2,}"
    r"|\b[A-Z]\w{1,40}(?:Error|Exception)\b|\bE[A-Z]{5,}\b|#[0-9a-fA-F]{3,8}\b"
    r"|(?<!\w)[$€£¥₹]?(?=[\w-]{0,40}\d)\w[\w.,:-]{0,60}[\w%]"
)
_WORD_END = re.compile(r"(?<=\S)(?=\s)|(?<=[，、；：])")


def select_sentences(text: str, *, sizes: Sequence[int], count: Callable[[str], int]) -> list[str]:
    """Return the text for each size in tokens: the whole message, else its most informative units with gaps marked.

    Filler is left out if there is anything else. If no unit fits, the start of the best one, cut between words;
    empty if not even that fits.
    """
    tokens = count(whole := text.strip())
    if all(tokens <= most_tokens for most_tokens in sizes):
        return [whole for _ in sizes]
    found = [unit for unit in split_units(text) if unit.kind != "rule"]
    ranked = rank(found)
    return [
        whole if tokens <= most_tokens else _fit(text, found, ranked, most_tokens=most_tokens, count=count)
        for most_tokens in sizes
    ]


def _fit(
    text: str, found: Sequence[TextUnit], ranked: Sequence[int], *, most_tokens: int, count: Callable[[str], int]
) -> str:
    kept: dict[int, None] = {}
    left, gap_tokens = most_tokens, count(GAP)
    for index in ranked:
        gaps = 1 - (index - 1 in kept) - (index + 1 in kept) if kept else 0
        tokens = count(found[index].text) + gaps * gap_tokens
        if tokens <= left:
            kept[index] = None
            left -= tokens
    best = list(kept)
    dropped = 1
    while best and count(_join(text, found, best)) > most_tokens:
        del best[-dropped:]
        dropped *= 2
    if best:
        return _join(text, found, best)
    return _clip(found[ranked[0]].text, most_tokens=most_tokens, count=count) if ranked else ""


def remove_filler(text: str) -> str:
    """Return the message without its filler, verbatim; empty if there is nothing else."""
    kept = [unit for unit in split_units(text) if unit.kind != "rule" and "filler" not in label_sentence(unit.text)]
    gaps = (text[before.end : unit.start] for before, unit in pairwise(kept))
    pieces = (f"{chr(10) if chr(10) in gap else ' '}{unit.text}" for gap, unit in zip(gaps, kept[1:], strict=True))
    return "".join([kept[0].text, *pieces]) if kept else ""


def rank(found: Sequence[TextUnit]) -> list[int]:
    """Return the indices of the units, the most important first, without filler if there is anything else."""
    # Tables, diffs and logs repeat their lines: each is judged once.
    keys = [(unit.text, unit.kind) for unit in found]
    different = dict(zip(keys, found, strict=True))
    marked = {key: label_sentence(unit.text) for key, unit in different.items()}
    worth = {key: _score(unit, marked[key]) for key, unit in different.items()}
    useful = [index for index, key in enumerate(keys) if "filler" not in marked[key]] or list(range(len(found)))
    scores = {index: worth[keys[index]] for index in useful}
    prose = [at for at in useful if found[at].kind in ("sentence", "item") and found[at].text[-1] not in ":："]
    for index in {*prose[:1], *prose[-1:]}:
        scores[index] += SCORES["edge"] * _measure_length(found[index])
    return sorted(scores, key=lambda index: (-scores[index], index))


def label_sentence(sentence: str) -> frozenset[Label]:
    """Return the labels of a sentence, by its words. A hypothesis, proposal or condition decides nothing."""
    words = sentence.lower().replace("’", "'")
    if _POLITE.match(words):
        return frozenset(("filler",))
    found = {label for label, cue in _CUES.items() if cue.search(words)}
    if sentence.endswith(("?", "？", "؟")):
        found.add("open")
    if "hypothesis" in found:
        found -= {"decision", "result"}
    if _FILLER.match(words) and found <= {"open", "hypothesis"} and not _VALUE.search(sentence):
        return frozenset(("filler",))
    return frozenset(found)


def _score(unit: TextUnit, stated: frozenset[Label]) -> float:
    if unit.kind in ("code", "heading"):
        return KIND_SCORES[unit.kind]
    cues = sum(SCORES.get(label, 0.0) for label in stated)
    values = SCORES["value"] * min(len(set(_VALUE.findall(unit.text))), MOST_VALUES)
    return KIND_SCORES[unit.kind] + _measure_length(unit) + values + (cues / 2 if "hypothesis" in stated else cues)


def _measure_length(unit: TextUnit) -> float:
    return min(len(unit.text.encode(errors="replace")) / LONG_BYTES, 1.0)


def _join(text: str, found: Sequence[TextUnit], kept: Sequence[int]) -> str:
    chosen = sorted(kept)
    pieces = [found[chosen[0]].text]
    for before, index in pairwise(chosen):
        between = text[found[before].end : found[index].start]
        blank = "\n" if "\n" in between else between
        pieces += [blank if index == before + 1 else GAP, found[index].text]
    return "".join(pieces)


def _clip(sentence: str, *, most_tokens: int, count: Callable[[str], int]) -> str:
    """Return the longest start of a sentence that fits, with the mark of a gap after it."""
    ends = [0, *(end.start() for end in _WORD_END.finditer(sentence))]
    low, high = 0, len(ends)
    while high - low > 1:
        middle = (low + high) // 2
        fits = count(sentence[: ends[middle]] + GAP.rstrip()) <= most_tokens
        low, high = (middle, high) if fits else (low, middle)
    return sentence[: ends[low]] + GAP.rstrip() if low else ""
