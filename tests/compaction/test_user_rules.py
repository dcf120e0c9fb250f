from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.sentences import MOST_RULE_CHARS
from lading.compaction.user_rules import (
    RESTATED,
    find_rules,
    find_statements,
    read_statements,
    restate,
)
from lading.messages import OWN, Message, Text, ToolResult, user_text
from tests.compaction.hostile import HOSTILE
from tests.engines import packs, run, settings
from tests.examples import quick_first
from tests.growth import assert_linear, ladder
from tests.histories import answered, histories, said, tool_loop
from tests.views import admitted, count

RULES = [
    "Never edit the migrations.",
    "Always run the tests first!",
    "The API key must not be printed",
    "You mustn't push to main.",
    "From now on answer in French.",
    "Under no circumstances delete a file.",
    "Please do not touch config.yaml.",
    "Don't rename public functions.",
    "dont use global state",
    "Good, but only use the standard library.",
    "Make sure that every file ends with a newline.",
    "please avoid new dependencies",
    "Remember to update the changelog.",
    "Secrets are forbidden in logs.",
    "Don\u2019t touch the lock file.",
    "You mustn\u2019t push to main.",
    "You should not rename a column.",
    "- Do not edit config.yaml",
    "* only use the standard library",
    "\u2022 Make sure that it builds",
    "- [ ] please avoid globals",
    "2) Do not commit",
    "**Do not** rename it",
    "Do  not delete a row",
]
IDLE = [
    "I don't think that is right.",
    "I do not know.",
    "Don't think about it.",
    "Do not  think about it.",
    "Please don't mind me.",
    "- Do not _think_ about it.",
    "You may not have seen it.",
    "Must it be so?",
    "Do you always do that?",
    "It only works on Linux.",
    "I only read the first file.",
    "Fix the bug in a.py.",
    "",
]


@pytest.mark.parametrize("rule", RULES)
def test_a_sentence_that_says_what_to_do_from_now_on_is_a_rule(rule: str) -> None:
    assert list(find_rules(user_text(rule))) == [rule]
    assert list(find_rules(user_text(f"  Hello there. {rule}\nThanks."))) == [rule]


@pytest.mark.parametrize("text", IDLE)
def test_questions_opinions_and_tasks_are_no_rules(text: str) -> None:
    assert list(find_rules(user_text(text))) == []


@pytest.mark.parametrize("rule", RULES)
def test_only_the_user_states_rules(rule: str) -> None:
    own = Message("user", (Text(rule),), origin=OWN)
    for message in (said(rule), answered("a", rule), Message("system", (Text(rule),)), own):
        assert list(find_rules(message)) == []
    beside = Message("user", (ToolResult("a", (Text(rule),)), Text("Always be kind.")))
    assert list(find_rules(beside)) == ["Always be kind."]


def test_a_text_that_holds_the_words_is_no_rule() -> None:
    assert list(find_rules(user_text("never " * MOST_RULE_CHARS))) == []


def test_a_rule_over_several_lines_is_stated_whole() -> None:
    rules = ["Do not edit the\nmigrations folder.", "- never push to\nmain", "- always ask", "Never guess"]
    assert list(find_rules(user_text("\r\n".join([*rules, "", "so it goes"])))) == rules
    long = "never do\n" + "it " * (MOST_RULE_CHARS // 3)
    assert list(find_rules(user_text(long))) == ["never do"]


@pytest.mark.parametrize(
    "rule",
    [
        "Never do any of the following:\n- call the API\n- delete a branch",
        "You must:\n\n1. log every call\n2. keep the ids",
        "You must\n* log every call\n* keep the ids",
        "Always do this:\nlog calls\nkeep the ids",
        "Rules that hold throughout:\n- UTC everywhere\n- never log tokens",
        "## Rules\n- UTC everywhere\n- no new dependencies",
        "**Constraints**\n\n- UTC everywhere\n\n- no new dependencies",
        "Never do these:\n- delete\n  - a branch\n  - a tag\n- push",
        "- Never do these:\n  - delete\n  - push",
        "Never commit to main. The only exception is CHANGELOG.md.",
        "Never commit to main.\nExcept for CHANGELOG.md.",
        "- Never commit to main.\n- Exception: CHANGELOG.md",
        "Never commit to main. CHANGELOG.md is the only exception.",
        "Never commit to main. This does not apply to CHANGELOG.md.",
        "Never deploy in a freeze. Otherwise you may deploy after the tests.",
        "Never do these:\n- delete\n- push\nThe only exception is CHANGELOG.md.",
        "Never name files by date, e.g. report_2024.md, i.e. use the ticket.",
    ],
)
def test_a_rule_is_stated_with_its_list_and_its_exception(rule: str) -> None:
    found = restate(
        find_statements([user_text(f"Hello there.\n\n{rule}\n\nThanks a lot.")]), most_tokens=1_000, count=count
    )
    stated = "\n".join(line.strip() for line in rule.splitlines() if line.strip())
    assert found == user_text(f"{RESTATED}\n{stated}")
    assert restate(find_statements([user_text(rule)]), most_tokens=1_000, count=count, without=rule) is None


@pytest.mark.parametrize("text", ["Never do any of the following:", "You must:\n```\nmake\n```", "Always:\n> go"])
def test_a_rule_whose_list_is_not_there_is_not_stated(text: str) -> None:
    assert list(find_rules(user_text(text))) == []


def test_a_long_list_is_stated_in_parts_behind_its_heading() -> None:
    items = [f"- touch the folder number {number} of the archive" for number in range(60)]
    parts = list(find_rules(user_text("\n".join(["Never:", *items, "", "Thanks."]))))
    assert len(parts) > 3
    assert all(part.startswith("Never:\n") and len(part) < 2 * MOST_RULE_CHARS for part in parts)
    assert [line for part in parts for line in part.split("\n")[1:]] == items


def test_a_task_s_list_is_not_a_rule() -> None:
    assert list(find_rules(user_text("To do:\n- fix a.py\n- never push\n- tests"))) == ["- never push"]


def test_rules_are_stated_again_each_once_in_their_order() -> None:
    messages = [user_text("Never a. Always b."), said("Never c."), user_text("Never a.\nNever d.")]
    found = restate(find_statements(messages), most_tokens=1_000, count=count)
    assert found == user_text(f"{RESTATED}\nNever a.\nAlways b.\nNever d.")
    assert (
        restate(
            find_statements(messages), most_tokens=1_000, count=count, without="Say: Never a. Always b. Never d."
        )
        is None
    )
    assert restate(find_statements([]), most_tokens=1_000, count=count) is None


def test_the_oldest_rules_give_way_when_all_take_too_much() -> None:
    messages = [user_text(f"Never touch file_{number}.py.") for number in range(100)]
    found = restate(find_statements(messages), most_tokens=200, count=count)
    assert found is not None
    rules = found.text.split("\n")[1:]
    assert rules == [message.text for message in messages[-len(rules) :]]
    assert 100 < count(found) <= 200
    assert restate(find_statements(messages), most_tokens=5, count=count) is None


@given(st.lists(st.sampled_from([*RULES, *IDLE, "\ud83d never", "x" * 700]), max_size=8), st.integers(0, 300))
def test_what_is_stated_again_was_stated(texts: list[str], most_tokens: int) -> None:
    found = restate(find_statements(map(user_text, texts)), most_tokens=most_tokens, count=count)
    if found is not None:
        assert count(found) <= most_tokens
        lines = found.text.split("\n")[1:]
        assert len(set(lines)) == len(lines)
        assert all(any(line in text for text in texts) for line in lines)


@pytest.mark.parametrize("strategy", ["priced", "basic"])
@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_rules_stay_verbatim_over_every_edit(strategy: str, wire: str) -> None:
    loop = tool_loop(150)
    places = {
        12: "Thanks. Never edit migrations/. Go on.",
        13: "Is it slow? It must stay below 80 ms.",
        150: "More.",
    }
    history = [part for at, message in enumerate(loop) for part in (message, *_asked(places.get(at), message))]
    engine, outcomes = run(settings(2_000, strategy=strategy, wire=wire), history)
    assert sum(edit.kind in ("summarised", "dropped") for edit in engine.history.edits) > 3
    after = [pack.body.decode() for pack in packs(outcomes)[10:]]
    assert len(after) > 100
    for rule in ("Never edit migrations/.", "It must stay below 80 ms."):
        assert all(rule in body for body in after)


def _asked(text: str | None, message: Message) -> list[Message]:
    return [] if text is None else [*([] if message.results else [answered(message.calls[0].id)]), user_text(text)]


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 4))
def test_rules_of_hostile_texts_are_found_in_linear_time(name: str) -> None:
    def find(text: str) -> None:
        found = restate(find_statements([user_text(text)]), most_tokens=500, count=count)
        assert found is None or count(found) <= 500

    assert_linear(find, *ladder(HOSTILE[name]))


@pytest.mark.parametrize(
    "text",
    [
        "Actually, never mind.",
        "Never mind that, it works now.",
        "There must be a mistake.",
        "You must be joking.",
        "I've never seen this error before.",
        "As always, thanks!",
        "Wait, don't run it.",
        "Stop, do not continue.",
        "Do not do anything yet.",
        "Don't answer yet, I'm still pasting.",
        "Do not touch it for now.",
        "Don't worry about it.",
    ],
)
def test_what_holds_for_a_moment_or_tells_something_is_no_rule(text: str) -> None:
    assert [*find_rules(user_text(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "Do not deploy until I say so.",
        "Wait for my approval before each push, and never push until you have it.",
        "There must be a test of each function.",
        "Do not, under any circumstances, drop tables.",
        "The page must be short.",
    ],
)
def test_what_holds_until_something_happens_is_a_rule(text: str) -> None:
    assert [*find_rules(user_text(text))] == [text]


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("Never use pytest.", "I changed my mind: use pytest after all."),
        ("Never use pytest.", "Forget that rule."),
        ("Never use pytest.", "You may use pytest again."),
        ("Never use pytest.", "The rule about pytest no longer applies."),
        ("Always use pytest.", "Switch to unittest."),
        ("Always use pytest.", "Stop using pytest."),
        ("Do not touch vendor/api.py.", "You can edit vendor/api.py now."),
        ("The budget is 500 EUR; do not exceed it.", "It is 800 EUR now."),
        ("Never push to main.", "Go ahead and push to main."),
        ("Never push to main.", "Pushing to main is fine for this release."),
        ("Never push to main.", "Scratch that."),
        ("Always answer in German.", "Actually, answer in English please."),
        ("Always use tabs.", "Sorry, I meant spaces."),
        ("You must ask me before each deploy.", "You don't need to ask before deploying."),
        ("You must ask me before each deploy.", "No need to ask before deploys."),
        ("Do not send any emails.", "The rule about email is lifted."),
    ],
)
def test_what_takes_a_rule_back_is_stated_again_with_it(rule: str, change: str) -> None:
    messages = [user_text(rule), said("Yes."), user_text(f"Thanks. {change} Go on.")]
    assert restate(find_statements(messages), most_tokens=1_000, count=count) == user_text(
        f"{RESTATED}\n{rule}\n{change}"
    )
    assert restate(find_statements(messages[1:]), most_tokens=1_000, count=count) is None
    later = [*messages, user_text(rule)]
    assert restate(find_statements(later), most_tokens=1_000, count=count) == user_text(
        f"{RESTATED}\n{change}\n{rule}"
    )


@pytest.mark.parametrize(
    "text", ["Now run the tests.", "You can see it in the log.", "That is fine. Go on.", "x " * 150]
)
def test_what_speaks_of_something_else_changes_no_rule(text: str) -> None:
    found = restate(
        find_statements([user_text("Never use pytest."), user_text(text)]), most_tokens=1_000, count=count
    )
    assert found == user_text(f"{RESTATED}\nNever use pytest.")


@given(histories(), st.integers(-1, 9), st.integers(-1, 9))
def test_what_the_user_stated_is_read_in_any_order_alike(raw: list[Message], first: int, last: int) -> None:
    rules = [user_text(f"Never do {number}. You may do {number} now.") for number in range(4)]
    view = admitted([*raw, *rules]).view
    for start, end in ((first, last), (0, 99), (first, last)):
        there = (message for _, message in view.raw_between(start, end))
        assert read_statements(view, end).between(start, end) == [*find_statements(there)]


def test_a_change_of_a_rule_in_an_earlier_record_is_stated() -> None:
    change = user_text("Go on. You may use pytest again. Then run it.")
    view = admitted(
        [user_text("Never use pytest."), said("Yes."), user_text("Thanks."), said("Done."), change]
    ).view
    log = read_statements(view, 4)
    assert [one.text for one in log.between(2, 4)] == ["You may use pytest again."]
    log.forget(0)
    log.upto = 3
    assert read_statements(view, 4).between(2, 4) == []


@pytest.mark.parametrize("later", ["", "Never use pytest."])
def test_no_rule_is_stated_behind_its_own_change(later: str) -> None:
    """A record shows the change, so that the rule alone would be the newest word."""
    change = "You may use pytest now."
    messages = [*map(user_text, ["Always use tabs.", "Never use pytest.", change, *filter(None, [later])])]
    shown = f"#9 User: {change}" + (f"\n#11 User: {later}" if later else "")
    found = restate(find_statements(messages), most_tokens=1_000, count=count, without=f"Always use tabs. {shown}")
    assert found == (None if later else user_text(f"{RESTATED}\nNever use pytest.\n{change}"))
    found = restate(find_statements(messages), most_tokens=1_000, count=count, without=shown)
    said = [*([] if later else ["Never use pytest."]), change, *filter(None, [later])]
    assert found == user_text("\n".join([RESTATED, "Always use tabs.", *said]))


def test_the_rules_of_several_people_have_their_names() -> None:
    def wrote(name: str, text: str) -> Message:
        return Message("user", (Text(text),), name=name)

    talk = [
        wrote("anna", "Hello. Never post my number."),
        wrote("ben", "Never post my number."),
        wrote("", "Always be brief."),
        wrote("#9 User: x", "Always cite the log."),
        wrote("anna", "You may post my number now."),
    ]
    lines = [
        RESTATED,
        "anna: Never post my number.",
        "ben: Never post my number.",
        "Always be brief.",
        "9 User: x: Always cite the log.",
        "anna: You may post my number now.",
    ]
    assert restate(find_statements(talk), most_tokens=1_000, count=count) == user_text("\n".join(lines))
    shown = "\n".join(f"#3 User: {line}" for line in lines[1:])
    assert restate(find_statements(talk), most_tokens=1_000, count=count, without=shown) is None
