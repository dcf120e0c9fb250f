"""Search a catalogue of tools by words: BM25 over names, descriptions and parameters, and what tools share.

Words are compared by their stems, identifiers in parts (``getUserId``: get, user, id). Tools whose descriptions
share a sentence form a *toolset*. A tool ranks higher where its toolset matches the query or was used, where it was
used itself, and where it gives what a parameter of one of the best tools asks for.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lading.messages import Tool

K1, B = 1.2, 0.5
NAME_WEIGHT = 3
"""Weight of a word of the name; a word of the description or of a parameter has weight 1."""
TOOLSET_SHARE, USED_TOOLSET_SHARE, USED_SHARE, GIVEN_SHARE = 0.3, 0.3, 0.1, 0.3
"""Added to a tool's score, in shares of the best match: its toolset matches, was used; it was used itself;
it gives what a better tool needs."""
LEAST_GIVEN = 0.4
"""Smallest share of a tool's name that a parameter must have for the tool to give it."""
NEEDY_TOOLS = 5
"""Number of best tools whose parameters are looked at."""
_STEM_CHARS = 6
_LEAST_STEM = 3
_SUFFIXES = (
    *("ations", "ation", "ings", "ing", "ions", "ion", "ies", "ied", "es", "ed", "ers", "er", "ly", "s", "e", "y"),
)
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_QUOTED = re.compile(r"(?<!\w)'[^']{1,400}'(?!\w)|\"[^\"]{1,400}\"")
_STOP_WORDS = frozenset(
    """
    a an the of to in on for and or by is be with this that which it its from as at if i my your you can could
    would please me we our their his her are was were will has have had not but so into than then them they he she
    what how when where
    """.split()  # noqa: SIM905 - a list of words reads as words
)
_MOST_QUERY_CHARS = 20_000


def list_stems(text: str) -> list[str]:
    """List the stems of a text's words in order, identifiers in parts, without the commonest words."""
    parts = (part.lower() for word in _WORD.findall(text) for part in _PART.findall(word))
    return [_stem(part) for part in parts if part not in _STOP_WORDS]


def _stem(word: str) -> str:
    if len(word) <= _LEAST_STEM:
        return word
    suffix = next((end for end in _SUFFIXES if word.endswith(end) and len(word) - len(end) >= _LEAST_STEM), "")
    if suffix and not word.endswith("ss"):
        word = word[: -len(suffix)]
    if len(word) > _LEAST_STEM + 1 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:_STEM_CHARS]


class Bm25:
    """BM25 over documents, each given as weights of its words."""

    def __init__(self, documents: Sequence[Mapping[str, float]], *, k1: float = K1, b: float = B) -> None:
        count = len(documents)
        sizes = [sum(document.values()) for document in documents]
        average = sum(sizes) / count if sum(sizes) else 1.0
        found = Counter(word for document in documents for word in document)
        self.idf = {word: math.log(1 + (count - of + 0.5) / (of + 0.5)) for word, of in found.items()}
        """By word; higher for a rarer one."""
        self._count = count
        self._gains: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, (document, size) in enumerate(zip(documents, sizes, strict=True)):
            for word, weight in document.items():
                gain = self.idf[word] * weight * (k1 + 1) / (weight + k1 * (1 - b + b * size / average))
                self._gains[word].append((at, gain))

    def score(self, words: Collection[str]) -> list[float]:
        """Return the score of each document."""
        scores = [0.0] * self._count
        for word in dict.fromkeys(words):
            for at, gain in self._gains.get(word, ()):
                scores[at] += gain
        return scores


class ToolIndex:
    """The tools of a request, found by name or by words."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.tools = tuple(tool for tool in tools if tool.schema is not None)
        """Without the provider's own tools."""
        self._places = {tool.name: at for at, tool in enumerate(self.tools)}
        sentences = [_list_sentences(tool.description) for tool in self.tools]
        holders = Counter(sentence for each in sentences for sentence in dict.fromkeys(each))
        shared = [[one for one in each if holders[one] > 1] for each in sentences]
        own = [[one for one in each if holders[one] == 1] for each in sentences]
        self._toolsets = [each[0] if each else "" for each in shared]
        """By tool, the sentence that names its toolset; empty: it has none."""
        self._names = [list_stems(tool.name) for tool in self.tools]
        self._parameters = [_list_parameters(tool.schema or {}) for tool in self.tools]
        self._index = Bm25(
            [
                Counter([*name * NAME_WEIGHT, *list_stems(" ".join(text)), *(word for one in of for word in one)])
                for name, text, of in zip(self._names, own, self._parameters, strict=True)
            ]
        )
        named = {name: " ".join(texts) for name, texts in zip(self._toolsets, shared, strict=True) if name}
        self._named = list(named)
        self._set_index = Bm25([Counter(list_stems(text)) for text in named.values()])

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name; None where there is none."""
        at = self._places.get(name)
        return None if at is None else self.tools[at]

    def search(
        self, query: str, *, used: Collection[str] = (), among: Collection[str] | None = None, limit: int = 10
    ) -> list[Tool]:
        """Return the tools that match best, at most ``limit``. A query that is a tool's name gives that tool alone.

        ``used``: names of tools that were called or found before. ``among``: only tools of these names.
        """
        exact = self.find(query.strip())
        if exact is not None:
            return [exact] if among is None or exact.name in among else []
        scores = self._score(query[:_MOST_QUERY_CHARS], used)
        allowed = [at for at, tool in enumerate(self.tools) if among is None or tool.name in among]
        ranked = sorted((at for at in allowed if scores[at] > 0), key=lambda at: (-scores[at], at))
        return [self.tools[at] for at in ranked[:limit]]

    def _score(self, query: str, used: Collection[str]) -> list[float]:
        # What is quoted is a value more often than a wish.
        asked = _QUOTED.sub(" ", query)
        asked = asked if list_stems(asked) else query
        words = list_stems(asked)
        scores = _scale(self._index.score(words))
        clauses = [list_stems(clause) for clause in _SENTENCE_END.split(asked)]
        if len(clauses := [clause for clause in clauses if clause]) > 1:
            # A tool may match one sentence of several well.
            each = [_scale(self._index.score(clause)) for clause in clauses]
            scores = _scale([score + max(of) for score, of in zip(scores, zip(*each, strict=True), strict=True)])
        sets = dict(zip(self._named, _scale(self._set_index.score(words)), strict=True))
        places = {self._places[name] for name in used if name in self._places}
        used_sets = {self._toolsets[at] for at in places} - {""}
        for at, toolset in enumerate(self._toolsets):
            scores[at] += TOOLSET_SHARE * sets.get(toolset, 0.0)
            scores[at] += USED_TOOLSET_SHARE * (toolset in used_sets) + USED_SHARE * (at in places)
        return self._add_givers(scores)

    def _add_givers(self, scores: list[float]) -> list[float]:
        """Raise tools that give what the best ones need."""
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:NEEDY_TOOLS]
        raised = list(scores)
        for giver, score in enumerate(scores):
            gains = [self._measure_given(giver, needy) * scores[needy] for needy in best if needy != giver]
            raised[giver] = score + GIVEN_SHARE * max(gains, default=0.0)
        return raised

    def _measure_given(self, giver: int, needy: int) -> float:
        """Return the share of a tool's name, rare words count more, that one parameter of a tool of the same
        toolset has; 0 for a small share."""
        if self._toolsets[giver] != self._toolsets[needy]:
            return 0.0
        name, idf = dict.fromkeys(self._names[giver]), self._index.idf
        whole = sum(idf[word] for word in name)
        shares = (sum(idf[word] for word in name if word in of) for of in self._parameters[needy])
        share = max(shares, default=0.0) / whole if whole else 0.0
        return share if share >= LEAST_GIVEN else 0.0


def _list_sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(text.strip()) if sentence]


def _list_parameters(schema: Mapping[str, Any]) -> list[list[str]]:
    """List the words of each parameter, its name and its description."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    texts = {name: of.get("description") if isinstance(of, Mapping) else "" for name, of in properties.items()}
    return [list_stems(f"{name} {text if isinstance(text, str) else ''}") for name, text in texts.items()]


def _scale(scores: Sequence[float]) -> list[float]:
    """Scale scores so that the best is 1."""
    best = max(scores, default=0.0)
    return [score / best for score in scores] if best > 0 else list(scores)
