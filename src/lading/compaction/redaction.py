"""Replace what looks like a secret in a text for a summarizing model.

The tables follow the public rules of gitleaks, detect-secrets and trufflehog. They are a best effort: a secret in
another form stays, and a value that only looks like one is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

TOKENS: Mapping[str, str] = {
    "1Password": r"ops_eyJ[\w+/=-]{40,}",
    "age": r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    "Alibaba Cloud": r"LTAI[A-Za-z0-9]{16,24}\b",
    "Anthropic, OpenAI and OpenRouter": r"sk-(?=[A-Za-z_-]{0,60}\d)[\w-]{16,}",
    "Artifactory": r"AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{55,}",
    "Atlassian": r"ATATT3[\w=-]{40,}",
    "AWS": r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    "Azure": r"[\w~.]{3}\dQ~[\w~.-]{30,}[\w~-]",
    "Databricks": r"dapi[0-9a-f]{32}",
    "DigitalOcean": r"do[opr]_v1_[0-9a-f]{40,}",
    "Discord": r"discord(?:app)?\.com/api/webhooks/\d{5,25}/[\w-]{20,}",
    "Docker": r"dckr_[op]at_[\w-]{20,}",
    "Fly.io": r"fo1_[\w-]{30,}|fm[12][ar]?_[\w+/=-]{40,}",
    "GitHub": r"gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
    "GitLab": r"gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat|wt)-[\w-]{16,}(?:\.[\w-]+)*|GR1348941[\w-]{16,}",
    "Google": r"AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}",
    "Grafana": r"gl(?:sa|c)_[\w+/=]{30,}",
    "Groq": r"gsk_[A-Za-z0-9]{30,}",
    "HashiCorp": r"hv[bsr]\.[\w-]{20,}|[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}",
    "Hugging Face": r"(?:hf|api_org)_[A-Za-z0-9]{30,}",
    "JSON Web Token": r"(?<!-)eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?",
    "Linear": r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}",
    "Microsoft Teams": r"webhook\.office\.com/webhookb2/[\w@/-]{40,}",
    "New Relic": r"NRAK-[A-Z0-9]{27}",
    "Notion": r"(?:ntn|secret)_[A-Za-z0-9]{40,}",
    "npm": r"npm_[A-Za-z0-9]{30,}",
    "OpenShift": r"sha256~[\w-]{43}",
    "Perplexity": r"pplx-[A-Za-z0-9]{40,}",
    "PlanetScale": r"pscale_(?:oauth|pw|tkn)_[\w=.-]{29,}[\w=-]",
    "Postman": r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    "Pulumi": r"pul-[0-9a-f]{40}",
    "PyPI": r"pypi-AgE[\w-]{40,}",
    "Replicate": r"r8_[A-Za-z0-9]{30,}",
    "RubyGems": r"rubygems_[0-9a-f]{40,}",
    "SendGrid": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "Sentry": r"sntry[su]_[\w+/=]{40,}",
    "Shopify": r"shp(?:at|ca|pa|ss|tka)_[0-9A-Fa-f]{32}",
    "Slack": r"xox[abceoprs]-[\w-]{10,}|xoxe\.xox[bp]-[\w-]{10,}|xapp-\d-[\w-]{10,}"
    r"|hooks\.slack\.com/(?:services|triggers|workflows)/[\w/+-]{16,}",
    "Square": r"EAAA[\w-]{50,}|sq0(?:atp|csp)-[\w-]{20,}",
    "Stripe": r"[prs]k_(?:(?:live|prod|test)_[A-Za-z0-9]{10,}|[A-Za-z0-9]{20,})|whsec_[\w+/=]{20,}",
    "Supabase": r"sb(?:p|_secret)_[\w-]{24,}",
    "Tailscale": r"tskey-[\w-]{16,}",
    "Telegram": r"\d{8,10}:AA[\w-]{32,}",
    "Twilio": r"SK[0-9a-f]{32}\b",
    "xAI": r"xai-[A-Za-z0-9]{60,}",
}
"""Tokens that are known by their form: who issues them, and the form."""
_QUOTE = r"\\{0,3}[\"'`]"
_SEPARATOR = rf"(?:{_QUOTE})?\]?\s{{0,3}}[:=]\s{{0,3}}"
_ARGUMENT = rf"(?:\s{{1,3}}|{_QUOTE},\s{{0,3}})"
# Each alternative begins with its first letter: `re` finds a set of letters much faster than a word in any case.
_NAME = (
    r"[aAeEpPrRsS](?:"
    r"(?<=[aA])(?i:pi[_-]?key|ccess[_-]?(?:key|token)|ccount[_-]?key|uth[_-]?token)"
    r"|(?<=[eE])(?i:ncryption[_-]?key)"
    r"|(?<=[pP])(?i:assw(?:or)?d|assphrase|asscode|rivate[_-]?key)|(?<=_P)(?:ASS|WD|W)|(?<=db_p)ass"
    r"|(?<=[rR])(?i:efresh[_-]?token)"
    r"|(?<=[sS])(?i:ecret(?:[_-]?key)?|igning[_-]?key|hared[_-]?access[_-]?key)"
    r")"
)
_OPTION = (
    r"(?i:pass|passw(?:or)?d|passphrase|pwd|secret|token|(?:access|account|api|auth|private|secret)-?(?:key|token))"
)
_SCHEME = r"(?i:apikey|api-key|basic|bearer|digest|token)\s{1,3}"
_QUOTED = r"(?:(?!(?P=quote))(?:\\[^\n]|[^\n\\])){4,}"
_CHAR = r"(?:[^\s\"'`,;\\]|\\(?![\"'`nrt]))"
_REFERENCE = (
    r"(?:\$(?:[A-Z][A-Z_]{2}|[{(])|<[A-Za-z]|%[({s]|\{|\*{3}|[A-Za-z_-]{0,20}\.{3}"
    r"|[A-Za-z_.]{0,80}[(\[]"
    r"|(?i:[A-Z_.-]{0,80}(?:key|passw(?:or)?d|passphrase|secret|secretstr|token)|none|null|undefined|true|false|await"
    r"|str|string|bytes|boolean|required|optional|missing|empty|invalid|incorrect|wrong)"
    r"(?(quote)(?=(?P=quote))|(?=[\s,;@)\]}`]|$)))"
)
"""In place of a value: a variable, a call, a placeholder, a type or another name of a secret."""


class Label(NamedTuple):
    """The text before a secret, and the form of the secret behind it."""

    before: str
    value: str = rf"(?(quote){_QUOTED}|{_CHAR}{{4,}})"
    """Within quotes where the secret is quoted."""
    word: str = ""
    """A word of ``before`` in lower case: texts without it are not searched."""


LABELS: Mapping[str, Label] = {
    "a password, secret or key by its name": Label(rf"{_NAME}{_SEPARATOR}"),
    "a token by its name": Label(
        rf"[tT](?i:oken){_SEPARATOR}", r"(?=[^\s\"']{0,60}\d)[\w.~+/=%-]{12,}+(?![(\[])", word="token"
    ),
    "an option of a command": Label(
        rf"--(?:\w{{1,20}}-){{0,3}}{_OPTION}{_ARGUMENT}",
        rf"(?!-)(?(quote){_QUOTED}|(?=\S{{0,60}}[\d!@#%^&*+]){_CHAR}{{4,}})",
        word="--",
    ),
    "a user of curl": Label(
        rf"\bcurl\b(?:(?!curl)[^\n]){{0,400}}?[\s\"'`]-(?:[A-Za-z]{{0,6}}u|-(?:proxy-)?user)"
        rf"(?:{_ARGUMENT}|=|)(?:{_QUOTE})?[^\s:\"'`]{{1,100}}:",
        rf"{_CHAR}+",
        word="curl",
    ),
    "an Authorization header": Label(
        rf"[aA](?i:uthorization){_SEPARATOR}(?:{_QUOTE})?(?:{_SCHEME}|(?=[^\s\"']{{0,60}}\d))",
        rf"{_CHAR}{{8,}}",
        word="authorization",
    ),
    "bearer and basic credentials": Label(r"\b[bB](?i:earer|asic)\s{1,3}", r"(?=[\w.~+/-]{0,60}\d)[\w.~+/=-]{16,}"),
    "a cookie": Label(
        rf"[cC](?i:ookie){_SEPARATOR}", rf"(?=[\w.-]{{1,60}}=)(?(quote){_QUOTED}|[^\n\"'`]{{4,}})", word="cookie"
    ),
    "a password in a URL": Label(r"://[^\s/:@\"'`<>]{0,100}:", r"[^\s/\"'`<>]{1,200}(?=@)", word="://"),
    "a signature in a URL": Label(
        r"[?&](?i:sig|(?:x-(?:amz|goog)-)?signature|x-amz-security-token)=", r"[^\s&\"'`]{16,}", word="sig"
    ),
}
"""Secrets that are known by what is before them."""
_TOKEN = re.compile(rf"(?:\b|(?<=\\[nrt]))(?:{'|'.join(TOKENS.values())})", re.ASCII)
_LABELLED = tuple(
    (each.word, re.compile(rf"({each.before}(?P<quote>{_QUOTE})?)(?!{_REFERENCE}){each.value}", re.ASCII))
    for each in LABELS.values()
)


def hide_secrets(text: str) -> str:
    """Replace each secret by ``[secret]``; what is before it stays."""
    text = _TOKEN.sub("[secret]", text)
    lowered = text.lower()
    for word, form in _LABELLED:
        if word in lowered:
            text = form.sub(r"\1[secret]", text)
    return text
