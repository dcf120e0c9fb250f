"""Compare the JSON of an answer with a schema, by the package ``jsonschema`` (extra ``schema``).

Nothing is loaded: a reference stays within its schema. Regular expressions are refused, since the answers that they
would be searched in are a model's, and ``re`` needs exponential time for some (``patterns.py`` does not).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lading.errors import InputError

MOST_CHARS = 300
"""Most characters of a difference, which quotes the value."""
_DEEP = "it refers to itself without end, or is nested too deeply"
_MISSING = "Comparing an answer with a schema needs the package jsonschema: pip install 'lading[schema]'."


def find_flaw(schema: Any) -> str:
    """Return why no answer can be compared with a schema; empty: it can. Raises InputError without the package."""
    try:
        from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - of an extra
        from referencing import Registry  # noqa: PLC0415
        from referencing.exceptions import Unresolvable  # noqa: PLC0415
        from referencing.jsonschema import DRAFT202012  # noqa: PLC0415
    except ImportError as error:
        raise InputError(_MISSING) from error
    try:
        validator = _make_validator(schema)
        validator.check_schema(validator.schema)
        resolver = Registry().resolver_with_root(DRAFT202012.create_resource(validator.schema))
        for part in _list_parts(validator.schema):
            if isinstance(part.get("$ref"), str):
                resolver.lookup(part["$ref"])
            if isinstance(part.get("pattern"), str) or "patternProperties" in part:
                return "it has a regular expression"
        # A reference to itself that ends at no part of a value ends at none of this one.
        validator.is_valid(None)
    except SchemaError as error:
        return _describe(error)
    except Unresolvable as error:
        return f"it refers to what is not in it: {error.ref}"
    except RecursionError:
        return _DEEP
    return ""


def find_mismatch(value: Any, schema: Any) -> str:
    """Return the difference that explains most, with its path; empty: there is none. Raises InputError without the
    package."""
    try:
        from jsonschema.exceptions import best_match  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise InputError(_MISSING) from error
    try:
        found = best_match(_make_validator(schema).iter_errors(value))
    except RecursionError:
        return f"$ cannot be compared with the schema: {_DEEP}"
    return _describe(found) if found else ""


def _make_validator(schema: Any) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415 - of an extra
    from referencing import Registry  # noqa: PLC0415

    plain = msgspec.to_builtins(schema)
    # A registry of its own, because the default one loads references from the network.
    return validator_for(plain, default=Draft202012Validator)(plain, registry=Registry())


def _describe(error: Any) -> str:
    text = f"{error.json_path}: {error.message}"
    return text if len(text) <= MOST_CHARS else text[:MOST_CHARS] + " ..."


def _list_parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    for one in waiting:
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
