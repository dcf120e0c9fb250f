"""What the files of the packages say, by kind of text."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from scripts.estimator.packages import File


class Document(NamedTuple):
    """The text of one file, and the kind of text it is."""

    kind: str
    name: str
    text: str

    @property
    def digest(self) -> str:
        """What decides whether the document is fitted to or measured: the hash of its text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


class Rule(NamedTuple):
    """Files of these packages (any: none named) whose path matches are of a kind, and are read so."""

    kind: str
    packages: str
    path: str
    read: Callable[[bytes], str]


LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "nb": "Norwegian", "ne": "Nepali", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sr": "Serbian", "sv": "Swedish", "ta": "Tamil",
    "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh_Hans": "Chinese",
    "zh_Hant": "Chinese, traditional",
}  # fmt: skip
"""Kinds of prose that come from translations."""

_LOCALES = {
    "zh_CN": "zh_Hans",
    "zh_TW": "zh_Hant",
    "pt_BR": "pt",
    "zh-Hans": "zh_Hans",
    "zh-Hant": "zh_Hant",
    "no": "nb",
    "sr@Cyrl": "sr",
    "sr@latin": "",
    "sr@Latn": "",
    "sr_Latn": "",
}
_OTHER_SCRIPTS = frozenset(
    {"ar", "bg", "bn", "el", "fa", "he", "hi", "ja", "ko", "ru", "ta", "th", "uk", "vi", "zh_Hans", "zh_Hant"}
)
"""Languages whose messages are hardly ever ASCII."""

_SPOKEN = {
    "russian": "Russian", "bulgarian": "Bulgarian", "hebrew": "Hebrew", "greek": "Greek", "hungarian": "Hungarian",
    "turkish": "Turkish", "czech": "Czech", "polish": "Polish", "arabic": "Arabic", "slovak": "Slovak",
    "romanian": "Romanian", "EUC-KR": "Korean", "SHIFT_JIS": "Japanese", "EUC-JP": "Japanese", "Johab": "Korean",
    "Big5": "Chinese, traditional", "GB2312": "Chinese", "TIS-620": "Thai", "KOI8-R": "Russian",
    "IBM866": "Russian",
}  # fmt: skip
"""Folders of the encoding samples of chardet, by the end of their name."""

_ENTRY = re.compile(
    r'^msgid ((?:"[^\n]*"\n)+)(?:msgid_plural [^\n]*\n(?:"[^\n]*"\n)*)?((?:msgstr[^\n]*\n(?:"[^\n]*"\n?)*)+)', re.M
)
_TRANSLATED = re.compile(r"/(?:locale|i18n|translations|locales)/([\w@]+)/(?:LC_MESSAGES/)?[\w.]+\.po$")
_MESSAGES = re.compile(
    r"/translations/(?:\w+/)?([\w-]+)-\w{32}\.json$|/locale/(\w+)/LC_MESSAGES/[\w.-]+-messages\.json$"
)
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def text(data: bytes) -> str:
    """UTF-8, wrong bytes replaced, line ends as they are."""
    return data.decode("utf-8", "replace")


def unpacked(data: bytes) -> str:
    """A gzip file's text."""
    return text(gzip.decompress(data))


def translations(data: bytes) -> str:
    """The translated messages of a gettext file, one below the other; those left in English are not there."""
    lines: list[str] = []
    for source, translated in _ENTRY.findall(text(data)):
        original = _joined(source)
        said = map(_joined, re.split(r"^msgstr(?:\[\d\])?", translated, flags=re.MULTILINE))
        lines += (message for message in said if message and original and message != original)
    return "\n".join(lines)


def foreign(data: bytes) -> str:
    """The messages of a JSON file of translations that are not in ASCII: the rest may be English."""
    return "\n".join(said for said in json.loads(data).values() if not said.isascii())


def visible(page: str) -> str:
    """The words of a page or a feed, without scripts and tags."""
    for _ in range(2):  # feeds carry markup inside markup
        page = re.sub(r"<!--.*?-->|<(script|style)\b.*?</\1>|<!\[CDATA\[|\]\]>", " ", page, flags=re.S | re.I)
        page = html.unescape(re.sub(r"<[^<>]*>", "\n", page))
    return re.sub(r"[ \t\r]*\n\s*", "\n", page)


_WITH_PAGES = "newspaper4k|trafilatura|pgadmin4|weblate|wagtail|django|ckan|horizon|statsmodels"

RULES = (
    Rule("English", "django|sphinx|jpype1|pgadmin4", r"^docs?/.*\.(txt|rst)$|docs/en_US/[^_].*\.rst$", text),
    Rule("markdown", "", r"^(?!tests/).*\.md$|dist-info/METADATA$|^PKG-INFO$", text),
    Rule("Python", "django|ckan|horizon|sphinx|statsmodels|weblate|openai", r"\.py$", text),
    Rule("JavaScript", "django|horizon|ckan|weblate|wagtail", r"^(?!.*\bmin\b).*\.js$", text),
    Rule("TypeScript", "bokeh", r"\.ts$", text),
    Rule("C and C++", "jpype1|psutil", r"\.(h|c|cc|cpp|hpp)$", text),
    Rule("Java", "jpype1", r"\.java$", text),
    Rule("SQL", "pgadmin4", r"\.sql$", text),
    Rule("CSS", "ckan|horizon|django|wagtail", r"^(?!.*\bmin\b).*\.s?css$", text),
    Rule("YAML", "horizon|ckan", r"\.ya?ml$", text),
    Rule("JSON", "botocore|vega-datasets|wagtail|ckan|horizon|newspaper4k", r"\.json$", text),
    Rule("JSON", "botocore", r"service-2\.json\.gz$", unpacked),
    Rule("CSV", "statsmodels|vega-datasets", r"\.csv$", text),
    Rule("HTML", _WITH_PAGES, r"\.html?$", text),
    Rule("diff", "whatthepatch", r"\.(diff|patch)$", text),
    Rule("Korean", "konlpy", r"corpus/.*\.txt$", text),
)  # fmt: skip


def documents(found: Iterable[File]) -> Iterator[Document]:
    """A document for each file that a rule, a translation or an encoding sample claims."""
    for file in found:
        for rule in RULES:
            if re.fullmatch(rule.packages or ".*", file.package) and re.search(rule.path, file.path):
                yield Document(rule.kind, f"{file.package}/{file.path}", rule.read(file.data))
        if (said := _TRANSLATED.search("/" + file.path)) and (kind := LANGUAGES.get(_language(said[1]))):
            yield Document(kind, f"{file.package}/{file.path}", translations(file.data))
        if (said := _MESSAGES.search(file.path)) and (locale := _language(said[1] or said[2])) in _OTHER_SCRIPTS:
            yield Document(LANGUAGES[locale], f"{file.package}/{file.path}", foreign(file.data))
        if file.package == "chardet" and (sample := re.match(r"tests/([\w-]+)/", file.path)):
            yield from _sample(file, sample[1])


def _language(locale: str) -> str:
    return _LOCALES.get(locale, locale if "zh" in locale else locale.partition("_")[0])


def _sample(file: File, folder: str) -> Iterator[Document]:
    encoding = re.sub(r"-[a-z]+$", "", folder) if folder.startswith(("iso", "windows")) else folder
    encoding = {"MacCyrillic": "mac_cyrillic", "TIS-620": "tis_620"}.get(encoding, encoding)
    for ending, kind in _SPOKEN.items():
        if folder.endswith(ending):
            said = visible(file.data.decode(encoding, "replace"))
            if sum(map(str.isalpha, said)) > len(said) / 2:  # some are tables drawn with lines
                yield Document(kind, f"chardet/{file.path}", said)


def _joined(quoted: str) -> str:
    whole = "".join(_QUOTED.findall(quoted))
    return re.sub(r'\\[nt"\\]', lambda escape: _ESCAPES[escape[0]], whole)
