"""Telling others: webhooks, Slack, e-mail, a file; each kind is tried again where that may help."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from api.features.watches.notification import Message
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import Delivery
from api.notifications.delivery import Undelivered, Webhooks, append
from api.notifications.mail import MailRoom

TRIES = 3
BACKOFF = (1.0, 4.0)
"""Seconds before the second and the third try."""


@dataclass(frozen=True, slots=True)
class Notifier:
    """Sends messages; a failure is a value, so that it can be kept with the run."""

    webhooks: Webhooks
    mail: MailRoom
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def send(self, watch: Watch, target: Target, message: Message) -> Delivery:
        """Three tries at most; what another try cannot mend is tried once."""
        failure: Undelivered | None = None
        number = 0
        for number in range(TRIES):
            if number:
                await self.pause(BACKOFF[number - 1])
            failure = await self._try(watch, target, message, number)
            if failure is None or not failure.again:
                break
        return Delivery(
            target=target.shown,
            delivered=failure is None,
            tries=number + 1,
            failure=failure and failure.failure,
            reason=failure.reason if failure else "",
            at=datetime.now(UTC),
        )

    async def _try(self, watch: Watch, target: Target, message: Message, number: int) -> Undelivered | None:
        """Why it did not arrive; None when it did."""
        try:
            match target.kind:
                case "file":
                    await asyncio.to_thread(append, Path(target.address), message)
                case "mail":
                    await self.mail.deliver(watch, target.address, message)
                case _:
                    await self.webhooks.post(watch, target, message, number)
        except Undelivered as failure:
            return failure
        return None
