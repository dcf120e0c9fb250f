"""Signatures over a request and its body: what AWS's library does for the SDKs, and how a server checks it."""

from __future__ import annotations

import hashlib
import hmac
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace

import httpx2
import pytest

KEY = b"secret"


def sign(method: str, url: str, headers: Mapping[str, str], *, body: bytes) -> str:
    """The value of ``Authorization`` for a request, signed with all of these headers."""
    named = sorted((name.lower(), value) for name, value in headers.items())
    text = repr((method, url, named, hashlib.sha256(body).hexdigest()))
    names = ";".join(name for name, _ in named)
    digest = hmac.new(KEY, text.encode(), "sha256").hexdigest()
    return f"AWS4-HMAC-SHA256 Credential=A/us-east-1, SignedHeaders={names}, Signature={digest}"


def is_signed(request: httpx2.Request) -> bool:
    """Whether a request that a server received has the signature of what it received."""
    given = request.headers.get("authorization", "")
    names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: request.headers.get(name, "") for name in names}
    return given == sign(request.method, str(request.url), headers, body=request.read())


class _AWSRequest:
    def __init__(self, method: str, url: str, headers: Mapping[str, str], data: bytes) -> None:
        self.method, self.url, self.headers, self.data = method, url, dict(headers), data

    def prepare(self) -> _AWSRequest:
        return self


class _SigV4Auth:
    def __init__(self, *_: object) -> None:
        pass

    def add_auth(self, request: _AWSRequest) -> None:
        request.headers["X-Amz-Date"] = "20260101T000000Z"
        request.headers["Authorization"] = sign(request.method, request.url, request.headers, body=request.data)


class _Session:
    def __init__(self, **_: object) -> None:
        self.region_name = "us-east-1"

    def get_credentials(self) -> object:
        return SimpleNamespace()


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDKs find this as AWS's library, which they need to sign."""
    found: dict[str, dict[str, object]] = {
        "boto3": {"Session": _Session},
        "botocore": {},
        "botocore.auth": {"SigV4Auth": _SigV4Auth},
        "botocore.awsrequest": {"AWSRequest": _AWSRequest},
        "botocore.credentials": {"Credentials": lambda *_: SimpleNamespace()},
        "botocore.session": {"Session": _Session},
    }
    for name, own in found.items():
        module = ModuleType(name)
        vars(module).update(own)
        monkeypatch.setitem(sys.modules, name, module)
