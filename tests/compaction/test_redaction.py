"""Which secrets are hidden from a summarizing model, and that nothing else is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import ascii_letters, ascii_uppercase, digits, hexdigits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.identifiers import MOST_PIECE_CHARS
from lading.compaction.redaction import LABELS, TOKENS, hide_secrets
from lading.messages import Text, ToolCall, ToolResult
from lading.sources import Recording, read
from tests.growth import assert_linear, ladder

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = sorted((ROOT / "examples/sessions").glob("*.jsonl.gz"))
LETTERS = ascii_letters + digits
HEX = hexdigits[:16]
UPPER = ascii_uppercase + digits


def run(letters: str, length: int) -> str:
    """Text of these letters that looks random and is the same in each run."""
    return "".join(letters[(7 * at * at + 3 * at + length) % len(letters)] for at in range(length))


ISSUED: Mapping[str, tuple[str, ...]] = {
    "1Password": ("ops_eyJ" + run(LETTERS, 60),),
    "age": ("AGE-SECRET-KEY-1" + run(UPPER, 58),),
    "Alibaba Cloud": ("LTAI" + run(LETTERS, 20),),
    "Anthropic, OpenAI and OpenRouter": tuple(
        f"sk-{kind}{run(LETTERS, 48)}" for kind in ("", "proj-", "ant-api03-", "or-v1-")
    ),
    "Artifactory": ("AKCp" + run(LETTERS, 69), "cmVmd" + run(LETTERS, 59)),
    "Atlassian": ("ATATT3" + run(LETTERS, 180) + "=2B",),
    "AWS": tuple(kind + run(UPPER, 16) for kind in ("AKIA", "ASIA", "ABIA", "ACCA")),
    "Azure": ("abc8Q~" + run(LETTERS, 34),),
    "Databricks": ("dapi" + run(HEX, 32),),
    "DigitalOcean": ("dop_v1_" + run(HEX, 64),),
    "Discord": ("discord.com/api/webhooks/123456789012345678/" + run(LETTERS, 68),),
    "Docker": ("dckr_pat_" + run(LETTERS, 27),),
    "Fly.io": ("fo1_" + run(LETTERS, 43), "fm2_" + run(LETTERS, 100)),
    "GitHub": (
        *(f"gh{kind}_{run(LETTERS, 36)}" for kind in "opsur"),
        f"github_pat_{run(LETTERS, 22)}_{run(LETTERS, 59)}",
    ),
    "GitLab": (
        *(f"gl{kind}-{run(LETTERS, 20)}" for kind in ("pat", "ptt", "dt", "rt")),
        "GR1348941" + run(LETTERS, 20),
    ),
    "Google": ("AIza" + run(LETTERS, 35), "ya29." + run(LETTERS, 60), "GOCSPX-" + run(LETTERS, 28)),
    "Grafana": ("glsa_" + run(LETTERS, 32) + "_" + run(HEX, 8), "glc_" + run(LETTERS, 60)),
    "Groq": ("gsk_" + run(LETTERS, 52),),
    "HashiCorp": ("hvs." + run(LETTERS, 90), run(LETTERS, 14) + ".atlasv1." + run(LETTERS, 67)),
    "Hugging Face": ("hf_" + run(ascii_letters, 34), "api_org_" + run(ascii_letters, 34)),
    "JSON Web Token": (".".join(("eyJ" + run(LETTERS, 30), "eyJ" + run(LETTERS, 50), run(LETTERS, 43))),),
    "Linear": ("lin_api_" + run(LETTERS, 40),),
    "Microsoft Teams": (
        f"webhook.office.com/webhookb2/{run(HEX, 36)}@{run(HEX, 36)}/IncomingWebhook/{run(HEX, 32)}",
    ),
    "New Relic": ("NRAK-" + run(UPPER, 27),),
    "Notion": ("ntn_" + run(digits, 11) + run(LETTERS, 35), "secret_" + run(LETTERS, 43)),
    "npm": ("npm_" + run(LETTERS, 36),),
    "OpenShift": ("sha256~" + run(LETTERS, 43),),
    "Perplexity": ("pplx-" + run(LETTERS, 48),),
    "PlanetScale": tuple(f"pscale_{kind}_{run(LETTERS, 43)}" for kind in ("oauth", "pw", "tkn")),
    "Postman": (f"PMAK-{run(HEX, 24)}-{run(HEX, 34)}",),
    "Pulumi": ("pul-" + run(HEX, 40),),
    "PyPI": ("pypi-AgEIcHlwaS5vcmc" + run(LETTERS, 150),),
    "Replicate": ("r8_" + run(LETTERS, 37),),
    "RubyGems": ("rubygems_" + run(HEX, 48),),
    "SendGrid": (f"SG.{run(LETTERS, 22)}.{run(LETTERS, 43)}",),
    "Sentry": ("sntrys_eyJ" + run(LETTERS, 80) + "=_" + run(LETTERS, 43), "sntryu_" + run(HEX, 64)),
    "Shopify": tuple(f"shp{kind}_{run(HEX, 32)}" for kind in ("at", "ca", "pa", "ss")),
    "Slack": (
        *(f"xox{kind}-{run(digits, 12)}-{run(LETTERS, 24)}" for kind in "abeoprs"),
        f"xapp-1-{run(UPPER, 11)}-{run(HEX, 64)}",
        f"hooks.slack.com/services/T{run(UPPER, 8)}/B{run(UPPER, 8)}/{run(LETTERS, 24)}",
    ),
    "Square": ("EAAA" + run(LETTERS, 60), "sq0atp-" + run(LETTERS, 22)),
    "Stripe": (*(f"{kind}_live_{run(LETTERS, 24)}" for kind in ("pk", "rk", "sk")), "whsec_" + run(LETTERS, 32)),
    "Supabase": ("sbp_" + run(HEX, 40),),
    "Tailscale": ("tskey-auth-" + run(LETTERS, 12) + "-" + run(LETTERS, 32),),
    "Telegram": (run(digits, 10) + ":AA" + run(LETTERS, 33),),
    "Twilio": ("SK" + run(HEX, 32),),
    "xAI": ("xai-" + run(LETTERS, 80),),
}
"""Tokens as their issuers write them."""
PLACES: Mapping[str, str] = {
    "alone": "<bare>",
    "JSON": json.dumps({"name": "deploy", "value": "<bare>", "more": [1, 2]}),
    "JSON in JSON": json.dumps({"stdout": json.dumps({"value": "<bare>", "more": 1})}),
    "lines in JSON": json.dumps("first line\nSECRET\nlast line"),
    "a file of settings": "FIRST=1\nVALUE=<bare>\nLAST=2",
    "a command": "deploy --to eu <bare> --fast && echo done",
    "a header": "Accept: text/plain\nX-Value: <bare>\nHost: here",
    "YAML": "value: <bare>\nmore: 1",
    "quoted YAML": "value: '<bare>'\nmore: 1",
    "a log line": "2026-01-02T03:04:05Z INFO deploy sent <bare> to eu-west-1",
    "a sentence": "I used (`<bare>`), which worked.",
    "text without spaces": "密钥SECRET。",
    "a URL": "see https://<bare> for more",
}


@pytest.mark.parametrize("issuer", TOKENS)
def test_a_token_of_a_known_form_is_hidden_wherever_it_is(issuer: str) -> None:
    for token in ISSUED[issuer]:
        for place in PLACES.values():
            assert hide_secrets(place.replace("<bare>", token)) == place.replace("<bare>", "[secret]")


PASSWORD_NAMES = """
    password passwd DB_PASSWORD PGPASSWORD SMTP_PASS MYSQL_PWD db_pass passphrase user.password api_key apiKey
    API-KEY X-API-Key OPENAI_API_KEY secret client_secret clientSecret SECRET_KEY AWS_SECRET_ACCESS_KEY access_token
    accessToken auth_token _authToken refresh_token private_key AccountKey SharedAccessKey encryption_key
    signing_key
    """.split()  # noqa: SIM905 - a list of words reads as words
TOKEN_NAMES = ["token", "TOKEN", "GITHUB_TOKEN", "id_token", "X-Auth-Token", "csrfToken"]
NAMED = (
    "<name>=<bare>",
    "export <name>=<bare>",
    "<name> = <bare> # as agreed",
    '<name> = "<quoted>"',
    "<name>: <bare>",
    "  <name>: '<quoted>'",
    "Server=db;<name>=<bare>;Timeout=3",
    '{"user": "ada", "<name>": "<quoted>", "port": 1}',
    json.dumps({"stdout": json.dumps({"<name>": "<quoted>", "port": 1})}),
    'os.environ["<name>"] = "<quoted>"',
    'curl -H "<name>: <bare>" https://here',
    json.dumps("FIRST=1\n<name>=<bare>\nLAST=2"),
    json.dumps({"cmd": 'curl -H "<name>: <bare>" https://here'}),
    "run <name>=<bare> build",
    "run --<name>=<bare> build",
    "12:00:01 INFO <name>=<bare> user=ada",
)
OPTIONS = ("--password", "--db-password", "--passphrase", "--token", "--api-key", "--secret-key", "--http-password")
OPTION_LINES = (
    "mysql -u ada <option> <bare> db",
    "mysql <option> '<quoted>' db",
    'mysql <option> "<quoted>"',
    '["mysql", "<option>", "<quoted>", "db"]',
    json.dumps({"argv": '["mysql", "<option>", "<quoted>"]'}),
)
OTHER_LINES: Mapping[str, tuple[str, ...]] = {
    "a user of curl": (
        "curl -u ada:<bare> https://here",
        "curl -sSu ada:<bare> https://here",
        "curl -X POST -H 'Accept: */*' -u 'ada:<bare>' https://here",
        "curl --user ada:<bare> https://here",
        "curl --user=ada:<bare> https://here",
        '["curl", "-u", "ada:<bare>", "https://here"]',
        '{"cmd": "curl -u \\"ada:<bare>\\" https://here"}',
    ),
    "an Authorization header": (
        "Authorization: token <bare>",
        "Authorization: Basic <bare>",
        "authorization: Bearer <bare>",
        "Proxy-Authorization: Basic <bare>",
        "Authorization: <bare>",
        '{"Authorization": "Token <bare>", "Accept": "*/*"}',
        "{'Authorization': 'Basic <bare>'}",
        "curl -H 'Authorization: token <bare>' https://here",
        json.dumps({"cmd": 'curl -H "Authorization: Basic <bare>"'}),
    ),
    "bearer and basic credentials": ("sent Bearer <bare> to eu", '"bearer <bare>"'),
    "a cookie": (
        "Cookie: <bare>",
        "Set-Cookie: <bare>",
        '{"Cookie": "<bare>", "Accept": "*/*"}',
        "curl -H 'Cookie: <bare>' https://here",
        "headers:\n  cookie: <bare>\n  accept: '*/*'",
    ),
    "a password in a URL": (
        "postgres://ada:<bare>@db:5432/x",
        "redis://:<bare>@cache",
        'DATABASE_URL="mysql://ada:<bare>@db/x"',
        "git clone https://ada:<bare>@here/repo.git",
    ),
    "a signature in a URL": (
        "https://store.blob/x?sv=1&sig=<bare>",
        "https://bucket/x?X-Amz-Signature=<bare>&X-Amz-Date=1",
        '"https://bucket/x?a=1&X-Amz-Security-Token=<bare>"',
    ),
}
BARE = ("hunter22", "s3cr3t/with+base64==", run(LETTERS, 24), "p@ss%word!1")
QUOTED = (*BARE, "correct horse battery 9 staple", "a, b; c 1")
RANDOM = (run(LETTERS, 24), "3f2a9c1d-0b7e-4c55-9d1f-5a6b7c8d9e0f", "v1.abc-DEF_123.456")
OTHER_VALUES: Mapping[str, tuple[str, ...]] = {
    "an Authorization header": ("YWRhOmh1bnRlcjIy", run(LETTERS, 24)),
    "bearer and basic credentials": (run(LETTERS, 24), "abc.def-1.ghi_klmnop"),
    "a cookie": (f"session={run(LETTERS, 24)}", f"theme=dark; sid={run(HEX, 32)}; Path=/"),
    "a password in a URL": ("hunter22", "p@ss", "x%20y!1"),
    "a signature in a URL": (run(HEX, 64), run(LETTERS, 43) + "%3D"),
}


def named_lines() -> Iterator[tuple[str, str]]:
    for names, values in ((PASSWORD_NAMES, (BARE, QUOTED)), (TOKEN_NAMES, (RANDOM, RANDOM))):
        for name in names:
            for line in NAMED:
                yield from filled(line.replace("<name>", name), *values)
    for option in OPTIONS:
        for line in OPTION_LINES:
            yield from filled(line.replace("<option>", option), BARE, QUOTED)
    for label, lines in OTHER_LINES.items():
        for line in lines:
            yield from filled(line, OTHER_VALUES.get(label, BARE), ())


def filled(line: str, bare: tuple[str, ...], quoted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each text with a secret, and the same without."""
    for place, values in (("<bare>", bare), ("<quoted>", quoted)):
        for value in values if place in line else ():
            yield line.replace(place, value), line.replace(place, "[secret]")


def test_a_secret_with_a_label_is_hidden_and_all_around_it_stays() -> None:
    wrong = [(line, hide_secrets(line)) for line, hidden in named_lines() if hide_secrets(line) != hidden]
    assert not wrong, wrong[:10]


def test_what_is_hidden_is_hidden_once() -> None:
    for line, hidden in named_lines():
        assert hide_secrets(hidden) == hidden, line


PLAIN = """
    password = get_password(user)
    password = os.environ["DB_PASSWORD"]
    self.password = password
    client = Client(api_key=api_key, token=token)
    client = Client(api_key=settings.openai_api_key)
    const apiKey = await getApiKey(provider);
    def login(user: str, password: str) -> bool:
    password: string | null
    password: Optional[str] = None
    export API_KEY=$OTHER_API_KEY
    DB_PASSWORD=${DB_PASSWORD}
    token: ${{ secrets.GITHUB_TOKEN }}
    password: <your-password>
    {"password": "", "token": null}
    {"api_key": "YOUR_API_KEY"}
    curl -H "Authorization: Bearer $API_TOKEN" https://here
    curl -H "Authorization: Bearer {token}" https://here
    The Authorization header is missing.
    Basic authentication is required here, bearer tokens are not.
    Pass --password to set it, or --token TOKEN, or --api-key-file PATH.
    docker run -u 1000:1000 --token-file /run/token image
    max_tokens: 4096, input_tokens=1200, tokens: [101, 2023, 102]
    token = tokenizer.next_token()
    eos_token: </s>
    the token: a word or a part of one
    cookie = SimpleCookie(text)
    http://localhost:8080/path?key=value&sig=1
    see https://user@host:8080/ and git@github.com:owner/repo.git
    commit 3f2a9c1d0b7e4c559d1f5a6b7c8d9e0f12345678
    3f2a9c1d-0b7e-4c55-9d1f-5a6b7c8d9e0f
    sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    npm_config_registry npm_package_json hf_hub_download_with_retries gsk_kernel
    sk-loading-spinner-container task-force-one-and-two pk_customer_orders_2020
    src/lading/history/view.py:12 secret_name ghost_mode_is_enabled
    hooks.slack.com/services is a host, SG.module.name a module
    AKIAKE is a name, EAAA is not
    """.strip().splitlines()


def test_code_and_prose_about_secrets_stay() -> None:
    assert [hidden for line in PLAIN if (hidden := hide_secrets(line)) != line] == []


WORDS = st.sampled_from(
    "sk npm hf gl api key token user pass auth session cookie file name 2 v1 x86".split()  # noqa: SIM905
)
JOINTS = st.sampled_from(["_", "-", ".", "/", " "])


@given(st.lists(st.tuples(WORDS, JOINTS), max_size=12))
def test_identifiers_stay(pieces: list[tuple[str, str]]) -> None:
    text = "".join(word + joint for word, joint in pieces)
    assert hide_secrets(text) == text


@given(
    st.text(HEX, min_size=7, max_size=64),
    st.uuids(),
    st.sampled_from(["commit {}", "id={}", '{{"id": "{}"}}', "{}.py"]),
)
def test_hashes_and_ids_stay(hashed: str, identifier: object, place: str) -> None:
    for value in (hashed, str(identifier)):
        assert hide_secrets(place.format(value)) == place.format(value)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name)
def test_nothing_in_sessions_without_secrets_is_taken_for_one(path: Path) -> None:
    recordings = [one for one in read(path) if isinstance(one, Recording)]
    parts = [part for recording in recordings for message in recording.messages for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, Text | ToolResult)]
    texts += [part.arguments for part in parts if isinstance(part, ToolCall)]
    assert texts
    assert [text for text in texts if hide_secrets(text) != text] == []


UNITS = (
    *r"""
    a a- - -- --a- eyJ- eyJa. sk- secret= secret=' secret=a. secret=abcd( secret="\ api_key=key ://a: ://a:b://
    ://: curl curl-u token= token=a1bcdefghijkl( authorization: cookie:a= ?sig= bearer SG. 1Q~ 12345678:AA ` \ \\"
    """.split(),  # noqa: SIM905
    *("curl ", "curl -u a", "--a-b-password ", "authorization: basic ", "bearer ", "password:   ", "token: a1"),
)


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_is_searched_in_linear_time(unit: str) -> None:
    assert_linear(hide_secrets, *ladder(unit * (MOST_PIECE_CHARS // len(unit))))


def test_the_manual_lists_what_is_recognised() -> None:
    manual = re.sub(r"\s+", " ", (ROOT / "docs/howto/summaries.md").read_text())
    assert [name for name in [*TOKENS, *LABELS] if name not in manual] == []
