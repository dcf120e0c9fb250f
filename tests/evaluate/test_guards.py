from __future__ import annotations

import json

import pytest

from lading.evaluate.guards import GuardMeasures, Guards, is_lossless
from lading.evaluate.value_recall import MessageTexts
from lading.messages import Message, Text, ToolResult
from lading.shrink import json_sampling
from tests.evaluate.sessions import WORDS, asks, gives, said

SYSTEM = said("system", "be brief")
HEAD = (SYSTEM, said("user", "mend the build"))
LOG = (
    *HEAD,
    asks(("a", "read", "{}"), ("b", "read", "{}")),
    gives("a", "one\ntwo in src/a.py\nthree\nfour"),
    gives("b", "five"),
    said("assistant", "so"),
    asks(("c", "read", "{}")),
    gives("c", "six"),
)
END = len(LOG)
NOTE = "[2 messages of 4,417 tokens, src/gone.py among them, are at artifact://t/s/log/2-4]"


def count(message: Message) -> int:
    """Words, those of results included."""
    results = [part.text for result in message.results for part in result.parts if isinstance(part, Text)]
    return sum(map(WORDS.count, (message.text, *results)))


def kept(*shown: Message, upto: int = END) -> GuardMeasures:
    return Guards(LOG, count=count, texts=MessageTexts()).measure(shown, upto)


def test_a_request_that_shows_everything() -> None:
    assert kept(*LOG) == GuardMeasures(True, True, count_all(*LOG), 0, ())


def count_all(*messages: Message) -> int:
    return sum(map(count, messages))


def test_equal_messages_count_like_the_same() -> None:
    copies = [Message(message.role, message.parts, name=message.name) for message in LOG]
    assert kept(*copies) == kept(*LOG)


def test_the_head_is_whole_when_all_of_it_is_there_as_it_was() -> None:
    assert kept(*HEAD).head_whole
    assert not kept(SYSTEM, *LOG[2:]).head_whole
    assert not kept(SYSTEM, said("user", "mend the build!"), *LOG[2:]).head_whole
    assert kept(SYSTEM, upto=1).head_whole


def test_results_that_were_not_read_yet() -> None:
    assert kept(*HEAD, *LOG[2:5], upto=5).newest_whole is True
    assert kept(*HEAD, *LOG[2:4], gives("b", "fi..."), upto=5).newest_whole is False
    assert kept(*HEAD, *LOG[2:3], gives("a", ""), LOG[4], upto=5).newest_whole is False
    assert kept(*HEAD, upto=2).newest_whole is None
    assert kept(*LOG[:6], upto=6).newest_whole is None


def test_the_run_goes_back_from_the_newest_to_the_first_message_that_is_not_whole() -> None:
    assert kept(*HEAD, *LOG[5:]).run_tokens == count_all(*LOG[5:])
    assert kept(*LOG[:3], gives("a", "[cleared]"), *LOG[4:]).run_tokens == count_all(*LOG[4:])
    assert kept(*LOG[:-1]).run_tokens == 0
    assert kept(*HEAD, *LOG[5:], said("user", "what was said at the end")).run_tokens == count_all(*LOG[5:])


def test_what_is_not_from_the_log_is_generated() -> None:
    assert kept(*HEAD, said("user", "a note of six words more"), *LOG[5:]).generated_tokens == 6
    assert kept(said("system", "another text"), HEAD[1]).generated_tokens == 0


def test_what_a_note_quotes_from_the_log_is_not_generated() -> None:
    note = said("user", "#1 User: mend the build\n- read src/a.py\nFiles changed: src/a.py (#3)")
    assert kept(SYSTEM, note, *LOG[5:]).generated_tokens == WORDS.count("#1 User: - read Files changed: (#3)")
    assert kept(SYSTEM, said("user", "build the mend"), *LOG[5:]).generated_tokens == 3
    assert kept(SYSTEM, said("user", "mend the  build"), *LOG[5:]).generated_tokens == 0


def test_lines_of_the_same_result_are_no_less_from_the_log() -> None:
    assert kept(*LOG[:3], gives("a", "one\nfour"), *LOG[4:]).generated_tokens == 0
    assert kept(*LOG[:3], gives("a", "one\n[cut here]\nfour"), *LOG[4:]).generated_tokens == 2
    assert kept(*LOG[:3], gives("a", "one\ntwo in src/a"), *LOG[4:]).generated_tokens == 0
    assert kept(*LOG[:3], gives("a", "five"), *LOG[4:]).generated_tokens == 1


def test_parts_that_stayed_are_from_the_log() -> None:
    both = Message("tool", (ToolResult("x", (Text("long text here"),)), ToolResult("y", (Text("seven"),))))
    log = (*HEAD, asks(("x", "read", "{}"), ("y", "read", "{}")), both)
    guards = Guards(log, count=count, texts=MessageTexts())
    noted = both.with_parts((ToolResult("x", (Text("[gone]"),)), both.parts[1]))
    assert guards.measure([*log[:3], noted], 4).generated_tokens == 1


def test_a_dotted_name_is_invented_where_one_of_its_parts_is() -> None:
    names = " and ".join(f"Theme.{name}" for name in ("render_all", "render_none", "py"))
    log = [*HEAD, said("assistant", "class Theme has render_all, for py")]
    guards = Guards(log, count=count, texts=MessageTexts())
    assert guards.measure([*HEAD, said("user", names)], len(log)).invented == ("Theme.render_none", "Theme.py")


def test_values_that_no_message_before_holds_are_invented() -> None:
    summary = said("user", "read src/a.py and src/b.py, build_7 failed")
    assert kept(*HEAD, summary, *LOG[5:]).invented == ("src/b.py", "build_7")
    assert kept(*HEAD, summary, upto=3).invented == ("src/a.py", "src/b.py", "build_7")


LINES = {
    "chinese": "错误：无法连接到数据库服务器。第{}行日志显示请求E4711处理超时。",
    "japanese": "データベースに接続できません。ログの{}行目でリクエストE4711がタイムアウトしました。",
    "thai": "ไม่สามารถเชื่อมต่อกับฐานข้อมูลได้บรรทัดที่{}ของคำขอE4711หมดเวลา",
    "korean": "데이터베이스에 연결할 수 없습니다. 로그의 {}번째줄에서 요청E4711이 시간을 초과했습니다.",
}


@pytest.mark.parametrize("mark", ["…", " […]", " …"])
@pytest.mark.parametrize("script", LINES)
def test_a_sentence_without_spaces_may_be_cut(script: str, mark: str) -> None:
    line = LINES[script].format(1024)
    guards = Guards([*HEAD, said("assistant", line * 3)], count=count, texts=MessageTexts())
    whole = {
        at for value in ("1024", "E4711") for at in range(line.index(value) + 1, line.index(value) + len(value))
    }
    for end in set(range(1, len(line))) - whole:
        cuts = (f"{line[:end]}{mark}", f"{mark}{line[end:]}", f"- log: {line[:end]}{mark}{line[end:]}")
        for cut in cuts:
            assert guards.measure([*HEAD, said("user", cut)], 3).invented == (), cut


@pytest.mark.parametrize("script", LINES)
def test_an_invented_value_in_a_sentence_without_spaces(script: str) -> None:
    guards = Guards([*HEAD, said("assistant", LINES[script].format(1024))], count=count, texts=MessageTexts())
    other = LINES[script].format(1025).replace("E4711", "E4712")
    for cut in (other, f"{other}…"):
        assert guards.measure([*HEAD, said("user", cut)], 3).invented == ("1025", "E4712")
    assert guards.measure([*HEAD, said("user", LINES[script].format(1024))], 2).invented == ("1024", "E4711")


def test_an_invented_short_number_in_chinese() -> None:
    guards = Guards([*HEAD, said("assistant", LINES["chinese"].format(10))], count=count, texts=MessageTexts())
    assert guards.measure([*HEAD, said("user", "第10行日志显…")], 3).invented == ()
    assert guards.measure([*HEAD, said("user", "第11行日志显…")], 3).invented == ("第11行",)


def test_lading_s_own_notes_may_tell_figures_that_stand_nowhere() -> None:
    assert kept(*HEAD, said("user", NOTE), *LOG[5:]).invented == ()
    assert kept(*HEAD, said("user", f"{NOTE}\nsrc/made_up.py"), *LOG[5:]).invented == ("src/made_up.py",)
    record = (
        "[Record of messages 7-412 (cut only at […]). To read more, restore artifact://log/7-412.]\nSteps 2-147: 9"
    )
    assert kept(*HEAD, said("user", record), *LOG[5:]).invented == ()
    assert kept(*HEAD, said("user", "see artifact://t/s/log/12_000"), *LOG[5:]).invented == ()
    assert kept(*HEAD, said("user", "called read 1200x"), *LOG[5:]).invented == ()
    assert kept(*HEAD, said("user", "0x1200x and 1200xy"), *LOG[5:]).invented == ("0x1200x", "1200xy")
    beside = "[Tool result: read — 14580 chars, compacted] Kept at artifact://t/s/log/3"
    assert kept(*HEAD, said("user", beside), *LOG[5:]).invented == ()
    assert kept(*HEAD, said("user", f"{beside} 14581"), *LOG[5:]).invented == ("14581",)
    assert kept(*HEAD, said("user", "[src/made_up.py]"), *LOG[5:]).invented == ("src/made_up.py",)


ROWS = json.dumps([{"id": number, "name": f"name {number}", "at": 1.50} for number in range(4)], indent=1)
IN_ROWS = "[Reformatted as json.rows without loss. Original: artifact://t/s/log/3]\n"


def reshaped(said: str) -> str:
    """The rows as admission shows them."""
    forms = {found.form: found.text for found in json_sampling.SHRINKER.reshape(said)}
    return f"{IN_ROWS}{forms['json.rows']}"


def test_what_decodes_to_what_was_said_counts_as_it_was() -> None:
    log = (*LOG[:3], gives("a", ROWS), *LOG[4:])
    guards = Guards(log, count=count, texts=MessageTexts())
    whole, shown = guards.measure(log, END), gives("a", reshaped(ROWS))
    assert guards.measure((*log[:3], gives("a", reshaped(ROWS)), *log[4:]), END).run_tokens < whole.run_tokens
    guards.add_reshaped(shown, log[3])
    older = "[Reshaped as json.rows, nothing left out. As it was: artifact://t/s/log/3]\n"
    assert is_lossless(gives("a", reshaped(ROWS).replace(IN_ROWS, older)), log[3])
    guards.add_reshaped(log[4], log[3])
    assert guards.measure((*log[:3], shown, *log[4:]), END) == whole
    assert guards.measure((*log[:3], shown, log[4]), 5).newest_whole is True
    assert guards.measure((*log[:4], log[4]), 5).newest_whole is True


@pytest.mark.parametrize(
    "text",
    [
        "1: one, 2: two in src/a.py",
        f"{IN_ROWS}no rows at all",
        reshaped(ROWS.replace("name 2", "name 7")),
        reshaped(ROWS.replace("1.5", "1.50")),
        reshaped(ROWS).replace("json.rows", "json.sampled"),
        reshaped(ROWS).replace("json.rows", "none.such"),
        reshaped(ROWS).replace("json.rows", "listing.rows"),
        reshaped(ROWS).partition("\n")[2],
    ],
)
def test_what_does_not_decode_to_what_was_said_is_not_whole(text: str) -> None:
    log = (*LOG[:3], gives("a", ROWS), *LOG[4:])
    guards, shown = Guards(log, count=count, texts=MessageTexts()), gives("a", text)
    guards.add_reshaped(shown, log[3])
    assert guards.measure((*log[:3], shown, log[4]), 5).newest_whole is False


def test_lines_of_clipped_arguments_are_from_the_log() -> None:
    whole = asks(("a", "write", json.dumps({"path": "a.py", "content": "one\ntwo\nthree\nfour"})))
    note = "[9 characters left out here after the call. Original: artifact://t/s/log/2]"
    cut = asks(("a", "write", json.dumps({"path": "a.py", "content": f"one\n{note}\nfour"})))
    other = asks(("a", "write", json.dumps({"path": "b.py", "content": "five"})))
    guards = Guards((*HEAD, whole), count=counted, texts=MessageTexts())
    assert guards.measure((*HEAD, asks(("a", "write", whole.calls[0].arguments))), 3).generated_tokens == 0
    assert guards.measure((*HEAD, cut), 3).generated_tokens == len(note)
    assert guards.measure((*HEAD, other), 3).generated_tokens == len("b.py\nfive")


def counted(message: Message) -> int:
    """Characters of text and arguments."""
    return len(message.text) + sum(len(call.arguments) for call in message.calls)
