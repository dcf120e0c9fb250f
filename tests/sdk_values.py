"""What a provider may send, made of the types that its SDK reads it into."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel

TEXTS = st.sampled_from(["", "a", "two words", "line\nline", "ü", '{"k": 1}'])
FREE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["b", "a", "n"]), inner, max_size=3)
    ),
    max_leaves=4,
)
"""Any JSON."""


def values(kind: Any) -> st.SearchStrategy[Any]:
    """The JSON values that a type of an SDK stands for."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is None or kind is type(None):
        return st.none()
    if origin is Annotated:
        return values(inner[0])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, types.UnionType):
        return st.one_of([values(one) for one in inner])
    if origin is list:
        return st.lists(values(inner[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(
            st.sampled_from(["b", "a"]), values(inner[1]) if len(inner) > 1 else FREE, max_size=2
        )
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return objects(kind)
    if kind is object or kind is Any or isinstance(kind, TypeVar):
        return FREE
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXTS,
        bool: st.booleans(),
        int: st.integers(0, 99),
        float: st.sampled_from([0.5, 2.25]),
    }
    return plain[kind]


def objects(kind: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects of a type: every required field, and of the others any."""
    required: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        place = required if field.is_required() else optional
        place[field.alias or name] = values(field.annotation)
    return st.fixed_dictionaries(required, optional=optional)


def shuffled(value: Any) -> Any:
    """The same value with the keys of its objects in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value
