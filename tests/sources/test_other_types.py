"""JSON of another type at any place of a session file: it is read or reported, whatever the format."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import SourceError
from lading.sources import SOURCES, Recording
from tests.places import OTHERS, places, put
from tests.sources.test_sources import SAMPLES
from tests.sources.written import json_lines, read_all, write


@pytest.mark.parametrize("name", SOURCES)
@given(data=st.data())
def test_another_type_anywhere_is_read_or_reported(name: str, data: st.DataObject) -> None:
    values = json.loads(json.dumps(SAMPLES[name]))
    for place in data.draw(st.lists(st.sampled_from(list(places(values))), min_size=1, max_size=2, unique=True)):
        try:
            values = put(values, place, data.draw(st.sampled_from(OTHERS)))
        except (AttributeError, IndexError, KeyError, TypeError):
            continue  # The first change took this place away.
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), json_lines([*map(json.dumps, values)]))
        for format_name in (None, name):
            try:
                recordings, _ = read_all(path, format_name=format_name)
            except SourceError:
                continue
            assert all(isinstance(item, Recording) for item in recordings)


def test_a_role_that_is_a_list_is_no_message(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        read_all(write(tmp_path, [{"role": ["user"], "content": "x"}]))
