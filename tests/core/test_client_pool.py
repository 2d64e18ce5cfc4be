"""Requests at once are spread over clients, of which only those in use stay open."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from api.core.client_pool import ClientPool


@dataclass
class Client:
    """A client that notes whether it is open."""

    open: bool = True

    async def aclose(self) -> None:
        """Close it."""
        self.open = False


async def test_requests_at_once_have_several_clients() -> None:
    """Eight share one; what a burst left is closed after five seconds, but for the first."""
    made: list[Client] = []
    now = [0.0]

    def make() -> Client:
        made.append(Client())
        return made[-1]

    pool = ClientPool(make, lambda: now[0])
    with ExitStack() as lent:
        clients = [lent.enter_context(pool.lent()) for _ in range(17)]
        assert clients == [made[number // 8] for number in range(17)]
        now[0] = 9.0
        await pool.close_idle()
        assert all(client.open for client in made), "the last one is in use"

    await pool.close_idle()
    assert len(made) == 3
    assert all(client.open for client in made), "they were in use a moment ago"
    now[0] = 14.0
    await pool.close_idle()
    assert [client.open for client in made] == [True, False, False]
    with pool.lent() as client:
        assert client is made[0]
    await pool.aclose()
    assert not made[0].open
