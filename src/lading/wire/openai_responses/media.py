"""Decode and encode images and documents. One that could not be encoded to an equal part stays an Opaque part."""

from __future__ import annotations

from typing import Any

from lading.messages import File, Image, Opaque
from lading.wire.templates import ABSENT, copy_json, fill, make_template
from lading.wire.translation import data_url, left_out_note, split_data_url

_FILE_FIELDS = ("file_data", "file_url", "file_id", "filename")


def read_image(source: dict[str, Any], path: str) -> Image | Opaque:
    """Decode an ``input_image`` block with a URL; one of a stored file is kept whole."""
    url = source.get("image_url")
    if not isinstance(url, str) or not url:
        return Opaque(copy_json(source, path))
    template = make_template(source, {"image_url": "str"}, path=path)
    if (inline := split_data_url(url)) is not None:
        return Image(media_type=inline[0], data=inline[1], template=template)
    return Opaque(copy_json(source, path)) if url.startswith("data:") else Image(url, template=template)


def write_image(image: Image, *, native: bool) -> dict[str, Any]:
    """Encode an image; ``native`` if its template is of this wire."""
    url = data_url(image.media_type or "image/png", image.data) if image.data else image.url
    if native and image.template is not None:
        return fill(image.template, {"image_url": url})
    return {"type": "input_image", "detail": "auto", "image_url": url}


def read_file(source: dict[str, Any], path: str) -> File | Opaque:
    """Decode an ``input_file`` block: inline, by URL or by id."""
    fields = {key: source[key] for key in _FILE_FIELDS if source.get(key) is not None}
    if not fields or not all(isinstance(value, str) and value for value in fields.values()):
        return Opaque(copy_json(source, path))
    data = fields.get("file_data", "")
    media_type, data = split_data_url(data) or ("", data)
    if media_type == "text/plain" or data.startswith("data:"):
        return Opaque(copy_json(source, path))
    return File(
        url=fields.get("file_url", ""),
        data=data,
        file_id=fields.get("file_id", ""),
        media_type=media_type,
        name=fields.get("filename", ""),
        template=make_template(source, dict.fromkeys(fields, "str"), path=path),
    )


def write_file(file: File, *, native: bool) -> dict[str, Any] | str:
    """Encode a document; a text file becomes plain text, and a note replaces one that this wire does not accept."""
    inline = data_url(file.media_type, file.data) if file.media_type and file.data else file.data
    if native and file.template is not None:
        values = {"file_data": inline, "file_url": file.url, "file_id": file.file_id, "filename": file.name}
        coded = (key for key in values if file.template.get(key) == "str")
        return fill(file.template, {key: values[key] or ABSENT for key in coded})
    if file.media_type == "text/plain" and file.data:
        return file.data
    if file.data:
        inline = data_url(file.media_type or "application/pdf", file.data)
        return {"type": "input_file", "filename": file.name or "document", "file_data": inline}
    if file.url:
        return {"type": "input_file", "file_url": file.url}
    return left_out_note(f"document {file.name or file.file_id}".rstrip())
