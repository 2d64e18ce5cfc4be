"""GitHub: issues of everything that has a repository, with their comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.sources.spec import Price, SourceSpec

if TYPE_CHECKING:
    from api.settings import SourceSettings

NAME = "github"
TOKEN = "LISTENPOST_GITHUB_TOKEN"
"""The setting that holds a token."""
THREADS = 5
"""Issues whose comments are read without a token: each takes one of 60 requests an hour."""


def token_of(settings: SourceSettings) -> str:
    """The token without blanks around it; empty when there is none."""
    token = settings.github_token
    return token.get_secret_value().strip() if token else ""


GITHUB = SourceSpec(
    name=NAME,
    title="GitHub",
    says="Bugs and wishes of whatever has a repository: issues with their comments.",
    page="docs/sources/github.md",
    variables=(),
    address="GITHUB_URL",
    module="api.sources.github.client",
    price=lambda settings: Price(
        entries=100, phrases=True, threads=None if token_of(settings) else THREADS
    ),
)
