import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import Address, check_name, make_name, parse, relative
from lading.errors import AddressError

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "item",
    ["0", "17", "17-42", "17-17", "17.2"],
)
def test_a_log_address_survives_its_spelling(item: str) -> None:
    text = f"artifact://acme/s-1.a_b/log/{item}"
    assert parse(text) == Address("acme", "s-1.a_b", "log", item)
    assert str(parse(text)) == text


@pytest.mark.parametrize("item", ["0", "17", "17-42", "17.2"])
def test_a_relative_address_belongs_to_the_session_it_is_read_in(item: str) -> None:
    place = Address("acme", "s-1", "log", item)
    assert place.relative == relative(item) == f"artifact://log/{item}"
    assert parse(relative(item), within=("acme", "s-1")) == parse(str(place), within=("t", "s")) == place
    with pytest.raises(AddressError, match=f"give artifact://TENANT/SESSION/log/{item}"):
        parse(relative(item))


@pytest.mark.parametrize("text", ["artifact://log", "artifact://log/x", "artifact://file/1", "artifact://s/log/1"])
def test_what_is_no_relative_address_is_refused_in_any_session(text: str) -> None:
    with pytest.raises(AddressError, match="is not an address"):
        parse(text, within=("t", "s"))


def test_a_blob_address_survives_its_spelling() -> None:
    assert str(parse(f"artifact://acme/s1/blob/{DIGEST}")) == f"artifact://acme/s1/blob/{DIGEST}"


@pytest.mark.parametrize(
    ("item", "span"),
    [("17", (17, 17, None)), ("17-42", (17, 42, None)), ("17.2", (17, 17, 2)), ("0", (0, 0, None))],
)
def test_a_log_span_is_first_last_and_part(item: str, span: tuple[int, int, int | None]) -> None:
    assert Address("t", "s", "log", item).log_span() == span


@pytest.mark.parametrize(
    "address",
    [
        Address("t", "s", "blob", DIGEST),
        Address("t", "s", "log", "x"),
        Address("t", "s", "log", "1-2-3"),
        Address("t", "s", "log", "٣"),
        Address("t", "s", "log", "42-17"),
    ],
)
def test_what_names_no_entries_has_no_span(address: Address) -> None:
    with pytest.raises(AddressError):
        address.log_span()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/etc/passwd",
        "file://t/s/log/1",
        "artifact://t/s/log",
        "artifact://t/s/log/1/2",
        "artifact:///s/log/1",
        "artifact://../s/log/1",
        "artifact://t/../log/1",
        "artifact://t/a..b/log/1",
        "artifact://t/s/file/1",
        "artifact://t/s/log/",
        "artifact://t/s/log/-1",
        "artifact://t/s/log/1\n",
        "artifact://t/s/log/١٧",
        "artifact://t/s/blob/1",
        f"artifact://t/s/blob/{DIGEST.upper()}",
        f"artifact://t/s/blob/{DIGEST}0",
        "artifact://t/s/blob/../../../etc/passwd",
        "ARTIFACT://t/s/log/1",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        parse(text)


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "0", "x" * 128])
def test_a_legal_name_comes_back(name: str) -> None:
    assert check_name(name, what="tenant") == name


@pytest.mark.parametrize("name", ["", ".", "..", "a..b", "-a", "_a", ".a", "a/b", "a b", "ä", "a\n", "x" * 129])
def test_an_odd_name_is_refused_and_the_error_says_whose(name: str) -> None:
    with pytest.raises(AddressError, match="name of a tenant"):
        check_name(name, what="tenant")


@given(st.text())
def test_a_name_can_be_made_from_any_text(text: str) -> None:
    name = make_name(text)
    assert check_name(name, what="session") == name


@pytest.mark.parametrize(
    ("text", "name"),
    [("abc-1", "abc-1"), ("2024/05: run #7", "2024-05-run-7"), ("--x--", "x"), ("日本", "session")],
)
def test_the_made_name_stays_close_to_the_text(text: str, name: str) -> None:
    assert make_name(text) == name


@pytest.mark.parametrize("item", ["42/step-3/report.md", "42/step-3/report.md@2", "tasks/a/b"])
def test_artifacts_of_steps_have_addresses_with_and_without_their_session(item: str) -> None:
    full = f"artifact://acme/s1/tasks/{item}"
    assert str(parse(full)) == full
    assert parse(f"artifact://tasks/{item}", within=("acme", "s1")) == parse(full)
    assert parse(full).relative == f"artifact://tasks/{item}"


def test_a_tenant_called_tasks_keeps_its_addresses() -> None:
    assert parse("artifact://tasks/42/log/17", within=("acme", "s1")).tenant == "tasks"


BAD_ITEMS = [
    "42/../report.md", "42/step-3/..", "42/step-3/a/b", "42/step-3", "42//report.md", "42/step-3/report.md@0",
    "42/step-3/report.md@",
    "42/step-3/a\\b", "42/step-3/a..b", "42/step-3/.env", "/etc/passwd/x", "42/blob/report.md",
    "42/step-3/report.md\n",
]  # fmt: skip


@pytest.mark.parametrize("item", BAD_ITEMS)
@pytest.mark.parametrize("scope", ["artifact://", "artifact://acme/s1/"])
def test_artifacts_of_steps_are_named_by_three_plain_pieces(item: str, scope: str) -> None:
    with pytest.raises(AddressError):
        parse(f"{scope}tasks/{item}", within=("acme", "s1"))
