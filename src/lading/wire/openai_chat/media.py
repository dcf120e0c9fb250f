"""Decode and encode images and documents. One that could not be encoded to an equal part stays an Opaque part."""

from __future__ import annotations

from typing import Any

from lading.messages import File, Image, Opaque
from lading.wire.templates import ABSENT, copy_json, fill, make_template
from lading.wire.translation import data_url, left_out_note, split_data_url

_FILE_CODES = {"file_data": "str", "file_id": "str", "filename": "str"}


def read_image(source: dict[str, Any], path: str) -> Image | Opaque:
    """Decode an ``image_url`` part."""
    holder = source.get("image_url")
    url = holder.get("url") if isinstance(holder, dict) else holder
    if not isinstance(url, str):
        return Opaque(copy_json(source, path))
    code = make_template(holder, {"url": "str"}, path=path) if isinstance(holder, dict) else "str"
    template = make_template(source, {"image_url": code}, path=path)
    inline = split_data_url(url)
    if inline is not None:
        return Image(media_type=inline[0], data=inline[1], template=template)
    return Opaque(copy_json(source, path)) if url.startswith("data:") else Image(url, template=template)


def write_image(image: Image, *, native: bool) -> dict[str, Any]:
    """Encode an image; ``native`` if its template is of this wire."""
    url = data_url(image.media_type or "image/png", image.data) if image.data else image.url
    if not native or image.template is None:
        return {"type": "image_url", "image_url": {"url": url}}
    code = image.template.get("image_url")
    return fill(image.template, {"image_url": fill(code, {"url": url}) if isinstance(code, dict) else url})


def read_file(source: dict[str, Any], path: str) -> File | Opaque:
    """Decode a ``file`` part: an inline PDF, or a file by its id."""
    holder = source.get("file")
    if not isinstance(holder, dict):
        return Opaque(copy_json(source, path))
    fields = {key: holder[key] for key in _FILE_CODES if key in holder}
    if not all(isinstance(value, str) and value for value in fields.values()):
        return Opaque(copy_json(source, path))
    data = fields.get("file_data", "")
    media_type, data = split_data_url(data) or ("", data)
    if media_type == "text/plain" or data.startswith("data:"):
        return Opaque(copy_json(source, path))
    return File(
        data=data,
        file_id=fields.get("file_id", ""),
        media_type=media_type,
        name=fields.get("filename", ""),
        template=make_template(source, {"file": make_template(holder, _FILE_CODES, path=path)}, path=path),
    )


def write_file(file: File, *, native: bool) -> dict[str, Any] | str:
    """Encode a document; a text file becomes plain text, and a note replaces one that this wire does not accept."""
    if native and file.template is not None:
        values = {
            "file_data": (data_url(file.media_type, file.data) if file.media_type else file.data) or ABSENT,
            "file_id": file.file_id or ABSENT,
            "filename": file.name or ABSENT,
        }
        return fill(file.template, {"file": fill(file.template.get("file"), values)})
    if file.media_type == "text/plain" and file.data:
        return file.data
    if file.data:
        inline = data_url(file.media_type or "application/pdf", file.data)
        return {"type": "file", "file": {"filename": file.name or "document", "file_data": inline}}
    return left_out_note(f"document {file.url or file.name or file.file_id}".rstrip())
