"""What the model client uses of its library without a promise: a version that lacks it fails."""

from __future__ import annotations

import httpx2


async def test_httpx2_keeps_a_body_that_was_read_for_it() -> None:
    """The client reads within its own limit and leaves the body where the library looks for it."""
    response = httpx2.Response(200, stream=httpx2.ByteStream(b"unread"))
    response._content = b'{"ok": true}'

    assert response.content == b'{"ok": true}'
    assert response.json() == {"ok": True}
    assert await response.aread() == b'{"ok": true}'
