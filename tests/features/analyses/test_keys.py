"""Keys of the environment and of the store: who they are, and who they are not."""

from __future__ import annotations

import pytest

from api.errors import AccessDenied, NotFound, StoreUnavailable, UsageError
from api.features.analyses.api_keys import LOCAL, LONGEST_NAME, Keys, Tenant, digest
from tests.services.shelf import Shelf


@pytest.fixture
def shelf() -> Shelf:
    """An empty store."""
    return Shelf()


async def test_without_keys_everybody_is_local(shelf: Shelf) -> None:
    """No key, no token: the command line's tenant."""
    keys = Keys([], shelf.store)

    assert await keys.authenticate(None) == LOCAL
    assert not await keys.configured()


async def test_a_wrong_token_is_refused_even_without_keys(shelf: Shelf) -> None:
    """Whoever sends a key means to be somebody."""
    with pytest.raises(AccessDenied):
        await Keys([], shelf.store).authenticate("anything")


async def test_keys_of_the_environment_are_tenants_of_their_own(shelf: Shelf) -> None:
    """Blanks and doubles do not count, and the tenant is the same at every start."""
    keys = Keys([" one ", "two", "", "one"], shelf.store)
    one, two = await keys.authenticate("one"), await keys.authenticate("two")

    assert one != two
    assert (one.origin, two.origin) == ("environment", "environment")
    assert await Keys(["one"], shelf.store).authenticate("one") == one
    assert [key.origin for key in await keys.listed()] == ["environment", "environment"]


async def test_tenant_of_an_id_is_there_while_its_key_is(shelf: Shelf) -> None:
    """For what is done in its name."""
    keys = Keys(["one", "two"], shelf.store)
    two = await keys.authenticate("two")
    made, _ = await keys.add("ann")

    assert await keys.tenant(LOCAL.id) == LOCAL
    assert await keys.tenant(two.id) == two
    assert await keys.tenant(made.id) == Tenant(made.id, "store")
    await keys.revoke(made.id)
    assert await keys.tenant(made.id) is None
    assert await Keys(["one"], shelf.store).tenant(two.id) is None


async def test_a_tenant_does_not_give_its_key_away(shelf: Shelf) -> None:
    """Neither the key nor its digest is in what is listed and stored."""
    keys = Keys(["secret-key"], shelf.store)
    (key,) = await keys.listed()

    assert digest("secret-key")[:8] not in repr(key)
    assert "secret-key" not in repr(key)
    assert key.name == "LISTENPOST_API_KEYS 1"


async def test_with_keys_a_token_is_needed(shelf: Shelf) -> None:
    """Nobody is local any more."""
    with pytest.raises(AccessDenied, match="Bearer"):
        await Keys(["one"], shelf.store).authenticate(None)


async def test_a_key_of_the_store_is_valid_until_it_is_revoked(shelf: Shelf) -> None:
    """Only its digest is stored."""
    keys = Keys([], shelf.store)
    made, text = await keys.add("  ann\n ")

    assert await keys.authenticate(text) == Tenant(made.id, "store")
    assert made.name == "ann"
    assert text.startswith("lp_")
    assert list(shelf.ring) == [digest(text)]
    await keys.revoke("ann")
    with pytest.raises(AccessDenied, match="not valid"):
        await keys.authenticate(text)


async def test_revoking_the_last_key_opens_nothing(shelf: Shelf) -> None:
    """A server that needed keys goes on needing them."""
    keys = Keys([], shelf.store)
    await keys.add("ann")

    before = keys.needed
    assert await keys.configured()
    await keys.revoke("ann")
    assert await keys.configured()
    assert (before, keys.needed) == (False, True), "as soon as this process has looked"
    assert not await Keys([], shelf.store).configured()


@pytest.mark.parametrize("name", ["", " \n", "x" * (LONGEST_NAME + 1)])
async def test_a_key_has_a_name(shelf: Shelf, name: str) -> None:
    """By which it is told from others."""
    with pytest.raises(UsageError, match="name"):
        await Keys([], shelf.store).add(name)
    assert not shelf.ring


async def test_what_cannot_be_revoked_says_why(shelf: Shelf) -> None:
    """A key that is not there, and one that the environment holds."""
    keys = Keys(["one"], shelf.store)
    tenant = await keys.authenticate("one")

    with pytest.raises(NotFound, match="nobody"):
        await keys.revoke("nobody")
    with pytest.raises(UsageError, match="LISTENPOST_API_KEYS"):
        await keys.revoke(tenant.id)


async def test_a_broken_store_lets_nobody_in(shelf: Shelf) -> None:
    """Whether keys are needed cannot be known, so the answer is not yes."""
    shelf.broken.add("keys")
    with pytest.raises(StoreUnavailable):
        await Keys([], shelf.store).authenticate(None)


async def test_a_token_may_hold_anything(shelf: Shelf) -> None:
    """Bytes that are no text are a wrong key, not a crash."""
    with pytest.raises(AccessDenied):
        await Keys(["é"], shelf.store).authenticate("\ud800")
    assert (await Keys(["é"], shelf.store).authenticate("é")).origin == "environment"
