"""JSON as bytes, the one way Lading writes it: compact, key order kept, lone surrogates escaped, no NaN.

Real shell output holds lone surrogates, which UTF-8 cannot carry; inside a JSON string the escape
``\\ud83d`` can. ``canonical`` is the named form under every checksum (``lading-canonical-1``): the same,
with sorted keys.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from lading.errors import IllegalRequest, Violation, WireError
from lading.frozen import FrozenDict, FrozenList
from lading.jsontypes import check_json
from lading.structs import convert

V = TypeVar("V")

CANONICAL_FORM = "lading-canonical-1"


_MOST_ITEMS = 100_000
"""A value with more, or one that holds itself, is left to json."""
_LEAST, _LARGEST = 1e-4, 1e16
"""Numbers in this range, and zero, are written without an exponent."""
_TEXT = frozenset((str,))
_PAIRS = re.compile(r"(?:[\ud800-\udbff][\udc00-\udfff])++")
_TOO_DEEP = "nested too deeply for JSON; a few hundred levels are read and written"

_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_sorted = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def dump(value: Any, *, keeps: bool = True) -> bytes:
    """Encode a value as JSON. ``keeps``: more than to take its digest. Raises ValueError for NaN, infinity or too
    deep nesting, TypeError for other types."""
    try:
        if is_plain(value):
            data = msgspec.json.encode(value)
            # A copy, because the original has room behind it for up to as much again.
            return bytes(memoryview(data)) if keeps else data
    except (UnicodeError, RecursionError):
        pass
    return _encode(_compact, value)


def dump_at(path: str, value: Any) -> bytes:
    """Encode a value as JSON. Raises IllegalRequest naming the path of a value with a NaN or infinite number, and
    WireError like ``check_json``."""
    try:
        return dump(value)
    except (TypeError, ValueError) as error:
        check_json(path, value)
        violation = Violation("JSON", "E", path, f"a number is NaN or infinite ({error})")
        raise IllegalRequest(
            f"{path} holds a number that JSON cannot carry (NaN or infinite). Replace it before the call.",
            violations=(violation,),
        ) from error


def as_stored(path: str, value: Any, *, type_: type[V]) -> V:
    """Return the value as it is read again once stored. Raises IllegalRequest and WireError like ``dump_at``, and
    WireError for a field that is not of its declared type."""
    check_json(path, value)
    built = msgspec.to_builtins(value)
    dump_at(path, built)
    try:
        return convert(built, type_)
    except ValueError as error:
        raise WireError(f"{path}: a field is of another type: {error}.") from error


def canonical(value: Any) -> bytes:
    """Encode a value as JSON with sorted keys, the form under checksums. Raises like ``dump``."""
    try:
        if is_plain(value):
            return msgspec.json.encode(value, order="sorted")
    except (UnicodeError, RecursionError):
        pass
    return _encode(_sorted, value)


def load(data: bytes | str, *, read: Callable[[bytes | str], Any] = json.loads) -> Any:
    """Decode JSON. ``read``: decodes what msgspec does not. Raises ValueError, with the position of a syntax error;
    also for too deep nesting."""
    try:
        # Several times as fast as json, with equal results; it refuses NaN and lone surrogates.
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        return read(data)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def make_finite(value: Any) -> Any:
    """Return the value with null in place of each number that JSON cannot carry; the same object if it is plain, or
    not of JSON's types."""
    try:
        return value if is_plain(value) else read_finite(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return value


def read_finite(data: bytes | str) -> Any:
    """Decode what a model wrote: a number that no request can carry (NaN, 1e400) is null, as SDKs have it."""
    return json.loads(data, parse_float=_read_finite, parse_constant=lambda _: None)


def _read_finite(digits: str) -> float | None:
    return number if math.isfinite(number := float(digits)) else None


def dump_value(value: msgspec.Struct) -> bytes:
    """Encode a Struct as JSON, for ``load_value``. Raises like ``dump``."""
    try:
        return dump(msgspec.to_builtins(value))
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def load_value(data: bytes, type_: type[V]) -> V:
    """Decode a Struct that ``dump_value`` wrote. Raises ValueError (msgspec.ValidationError included)."""
    return convert(load(data), type_)


def digest(data: bytes) -> str:
    """Return the SHA-256 of the bytes in hex."""
    return hashlib.sha256(data).hexdigest()


def is_plain(value: Any) -> bool:
    """Whether msgspec, several times as fast as json, encodes the value equally: exponents differ, and odd keys."""
    found = [value]
    for item in found:
        kind = type(item)
        # Most items are texts.
        if kind is str or kind is bool or item is None:
            continue
        if kind is dict or kind is FrozenDict:
            if not _TEXT.issuperset(map(type, item)):
                return False
            found += item.values()
        elif kind is list or kind is tuple or kind is FrozenList:
            found += item
        elif kind is int or kind is float:
            if item and not _LEAST <= abs(item) < _LARGEST:
                return False
        else:
            return False
        if len(found) > _MOST_ITEMS:
            return False
    return True


def _encode(encoder: json.JSONEncoder, value: Any) -> bytes:
    try:
        return _utf8(encoder.encode(value))
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Surrogates that form a pair are decoded as one character: joined first, so that encoding the decoded
        # value gives the same bytes. A lone one becomes \udXXX, its escape in JSON.
        joined = _PAIRS.sub(lambda pairs: pairs[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
        return joined.encode("utf-8", "backslashreplace")
