"""API keys from the environment and the store; each key is a tenant of its own."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from api.core.text import clean, one_line
from api.errors import AccessDenied, NotFound, UsageError
from api.features.analyses.store_ports import ApiKey, Store

VARIABLE = "LISTENPOST_API_KEYS"
REVOKED = "the API key that it belongs to is no longer valid"
LONGEST_NAME = 100
"""Characters the name of a key may have."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Owner of analyses, limits and sessions, which no other tenant can see."""

    id: str
    origin: Literal["local", "environment", "store"]


LOCAL = Tenant("local", "local")
"""Tenant of this machine: the command line, and the server while no key exists."""


def digest(key: str) -> str:
    """SHA-256 of a key in hexadecimal; the key itself is not stored."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """The keys that are valid now."""

    def __init__(self, environment: Iterable[str], store: Store) -> None:
        """`environment`: keys from the variable; they cannot be revoked here."""
        keys = dict.fromkeys(key.strip() for key in environment)
        # a tenant's name is the same at every start, and not the digest of its key
        self._environment = tuple(
            (
                digest(key),
                Tenant(f"env_{digest(f'listenpost tenant {key}')[:12]}", "environment"),
            )
            for key in keys
            if key
        )
        self._store = store
        self._required = bool(self._environment)

    @property
    def needed(self) -> bool:
        """Whether a key is needed, as far as this process has learnt; see `configured`."""
        return self._required

    async def configured(self) -> bool:
        """Whether a key is needed; once one was, it stays so while the process runs.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        if not self._required:
            self._required = any(not key.revoked for key in await self._store.keys())
        return self._required

    async def authenticate(self, token: str | None) -> Tenant:
        """The tenant of a key; `LOCAL` without a token while no key is configured.

        Raises:
            AccessDenied: no key although one is needed, or one that is not valid.
            StoreUnavailable: the database cannot be used.
        """
        if token is None:
            if await self.configured():
                raise AccessDenied("send an API key: `Authorization: Bearer KEY`")
            return LOCAL
        given, tenant = digest(token), None
        for known, owner in self._environment:  # all of them, so that time tells nothing
            if hmac.compare_digest(known, given):
                tenant = owner
        if tenant is None and (kept := await self._store.key_of(given)) is not None:
            tenant, self._required = Tenant(kept.id, "store"), True
        if tenant is None:
            raise AccessDenied("the API key is not valid; `listenpost keys list` shows which are")
        return tenant

    async def tenant(self, tenant_id: str) -> Tenant | None:
        """The tenant with this id, for work done in its name; None when its key is gone.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        if tenant_id == LOCAL.id:
            return LOCAL
        for _, owner in self._environment:
            if owner.id == tenant_id:
                return owner
        valid = (key for key in await self._store.keys() if not key.revoked)
        return next((Tenant(key.id, "store") for key in valid if key.id == tenant_id), None)

    async def add(self, name: str) -> tuple[ApiKey, str]:
        """A new key and its text, which is shown this once.

        Raises:
            UsageError: the name is empty, too long or taken.
            StoreUnavailable: the database cannot be used.
        """
        name = one_line(clean(name))
        if not name or len(name) > LONGEST_NAME:
            raise UsageError(f"a key needs a name of 1 to {LONGEST_NAME} characters")
        text = f"lp_{secrets.token_urlsafe(32)}"
        return await self._store.add_key(name, digest(text)), text

    async def listed(self) -> Sequence[ApiKey]:
        """Every key with its origin, revoked ones too.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        own = (
            ApiKey(tenant.id, f"{VARIABLE} {number}", "environment", None)
            for number, (_, tenant) in enumerate(self._environment, 1)
        )
        return (*own, *await self._store.keys())

    async def revoke(self, key: str) -> None:
        """Make a key invalid, by id or name.

        Raises:
            NotFound: there is none.
            UsageError: it comes from the environment.
            StoreUnavailable: the database cannot be used.
        """
        if any(tenant.id == key for _, tenant in self._environment):
            raise UsageError(f"`{key}` comes from `{VARIABLE}`; remove it there")
        if not await self._store.revoke_key(key):
            raise NotFound(f"there is no key `{key[:60]}`; `listenpost keys list` shows them")
