"""What our clients touch of their libraries without a promise: a new version that changes it fails.

Of praw, prawcore and requests they are touched in `api/sources/reddit.py` alone; YouTube's
httplib2 and Amazon's httpx need none.
"""

from __future__ import annotations

import ast
import configparser
import http.client
import inspect
import re
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import httplib2
import praw
import requests
from praw.config import Config
from prawcore import Requestor
from prawcore.const import ACCESS_TOKEN_PATH

from tests.sources.emulators import RedditEmulator

PRIVATE = {"reddit.py": {"_core", "_expiration_timestamp_ns", "_content"}}


def test_no_other_private_member_is_touched(root: Path) -> None:
    """Of objects that are not its own, a source touches what is tested here, in one file."""
    folder, foreign = root / "api" / "sources", dict[str, set[str]]()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Attribute)
                and re.match(r"_(?!_)", node.attr)
                and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
            ):
                foreign.setdefault(path.relative_to(folder).as_posix(), set()).add(node.attr)

    assert foreign == PRIVATE


def test_praws_session_holds_the_token_and_its_end() -> None:
    """The token asked for by one client is given to another, with its end in nanoseconds."""
    with RedditEmulator() as upstream:
        asking, using = (
            praw.Reddit(
                client_id="i", client_secret="s", user_agent="a test of praw",
                reddit_url=upstream.server.url, check_for_updates=False,
            )
            for _ in range(2)
        )  # fmt: skip
        cores: list[Any] = [asking._core, using._core]
        authorizer, other = (core.authorizer for core in cores)
        authorizer.refresh()
        left = authorizer._expiration_timestamp_ns - time.monotonic_ns()
        other.access_token = authorizer.access_token
        other._expiration_timestamp_ns = authorizer._expiration_timestamp_ns
        valid = other.is_valid()
        other._expiration_timestamp_ns = 0
        for core in cores:
            core.close()

    assert 3500 < left / 1e9 < 3700
    assert valid
    assert not other.is_valid()


def test_praw_reads_its_file_into_one_place() -> None:
    """A configuration that stands there is the one that is read."""
    before, parser = Config.CONFIG, configparser.ConfigParser(interpolation=None)
    parser.read_string(files("praw").joinpath("praw.ini").read_text("utf-8"))
    parser.set("DEFAULT", "user_agent", "from the test")
    Config.CONFIG = parser
    try:
        read = Config("DEFAULT")
    finally:
        Config.CONFIG = before

    assert read.user_agent == "from the test"


def test_prawcore_sends_through_one_method() -> None:
    """Our requestor overrides it, and knows the request for a token by its path."""
    assert {"args", "timeout", "kwargs"} < set(inspect.signature(Requestor.request).parameters)
    assert ACCESS_TOKEN_PATH == "/api/v1/access_token"


def test_requests_keeps_a_body_that_was_read_for_it() -> None:
    """What we read, the library gives as its own."""
    response = requests.Response()
    response._content = b'{"a": 1}'

    assert response.content == b'{"a": 1}'
    assert response.json() == {"a": 1}


def test_httplib2_takes_our_connections_and_limits() -> None:
    """A connection with our kind of answer, limits on unpacking, and no redirects."""
    asked: Any = inspect.signature(httplib2.Http.request).parameters
    made: Any = inspect.signature(httplib2.Http.__init__).parameters

    assert "connection_type" in asked
    assert {"proxy_info", "decode_limit_hard", "decode_limit_chunk"} < set(made)
    assert httplib2.Http().follow_redirects is True
    assert issubclass(httplib2.HTTPConnectionWithTimeout, http.client.HTTPConnection)
    assert issubclass(httplib2.HTTPSConnectionWithTimeout, http.client.HTTPSConnection)
    assert http.client.HTTPConnection.response_class is http.client.HTTPResponse
