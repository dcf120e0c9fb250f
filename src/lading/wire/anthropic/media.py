"""Pictures and documents as Messages blocks: each kind read and written side by side.

A source of a kind that our values do not know is kept whole as an Opaque part.
"""

from __future__ import annotations

from typing import Any

from lading.messages import File, Image, Opaque
from lading.wire.shapes import copied
from lading.wire.templates import code_of, fill, template_of, written
from lading.wire.translation import left_out

_FIELDS = {
    "base64": ("media_type", "data"),
    "text": ("media_type", "data"),
    "url": ("url",),
    "file": ("file_id",),
}
"""What a source holds, by its type."""


def read_image(source: dict[str, Any], path: str) -> Image | Opaque:
    """An ``image`` block."""
    fields = _read_source(source.get("source"))
    if fields is None or fields["type"] not in ("base64", "url"):
        return Opaque(copied(source, path))
    return Image(
        url=fields.get("url", ""),
        data=fields.get("data", ""),
        media_type=fields.get("media_type", ""),
        template=_template(source, {}, path=path),
    )


def write_image(image: Image, *, native: bool) -> dict[str, Any] | str:
    """The block; words in its place when there is neither data nor address."""
    if image.data:
        source = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    elif image.url:
        source = {"type": "url", "url": image.url}
    else:
        return left_out("image")
    return _write("image", source, image.template if native else None, {})


def read_document(source: dict[str, Any], path: str) -> File | Opaque:
    """A ``document`` block."""
    fields = _read_source(source.get("source"))
    if fields is None or (fields["type"] == "text") != (fields.get("media_type") == "text/plain"):
        return Opaque(copied(source, path))
    title = source.get("title")
    codes = {"title": code_of(title, f"{path}.title")}
    return File(
        url=fields.get("url", ""),
        data=fields.get("data", ""),
        file_id=fields.get("file_id", ""),
        media_type=fields.get("media_type", ""),
        name=title or "",
        template=_template(source, codes, path=path),
    )


def write_document(file: File, *, native: bool) -> dict[str, Any] | str:
    """The block; words in its place where this wire cannot take the document."""
    if file.data and file.media_type == "text/plain":
        source = {"type": "text", "media_type": "text/plain", "data": file.data}
    elif file.data and (native or file.media_type in ("application/pdf", "")):
        source = {"type": "base64", "media_type": file.media_type or "application/pdf", "data": file.data}
    elif file.url:
        source = {"type": "url", "url": file.url}
    elif file.file_id and native:
        source = {"type": "file", "file_id": file.file_id}
    else:
        return left_out(f"document {file.name}".rstrip())
    template = file.template if native else None
    return _write("document", source, template, {"title": written(file.name, (template or {}).get("title"))})


def _read_source(source: Any) -> dict[str, str] | None:
    """Type and known fields of a source; None unless all of them are there and hold words."""
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        return None
    fields = {key: source.get(key) for key in ("type", *_FIELDS[kind])}
    return fields if all(isinstance(value, str) and value for value in fields.values()) else None


def _template(source: dict[str, Any], codes: dict[str, Any], *, path: str) -> dict[str, Any]:
    holder = source["source"]
    known = dict.fromkeys(_FIELDS[holder["type"]], "str")
    return template_of(source, codes | {"source": template_of(holder, known, path=path)}, path=path)


def _write(
    kind: str, source: dict[str, str], template: dict[str, Any] | None, fields: dict[str, Any]
) -> dict[str, Any]:
    was = (template or {}).get("source", {})
    filled = fill(was, source) if was.get("type") == source["type"] else source
    return fill(template or {"type": kind}, {"source": filled} | fields)
