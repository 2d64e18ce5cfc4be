"""A message, and telling somebody of it without waiting."""

from __future__ import annotations

from api.features.watches.notification import Message
from api.features.watches.watch import Target, target_of
from api.features.watches.watch_run import Delivery
from api.notifications.delivery import MailSender, Notifier, Webhooks
from api.settings import MailSettings
from tests.features.watches.made import WATCH

MESSAGE = Message("run1", "Ember: 1 new <post>", b'{"id": "run1"}')


class Pauses(list[float]):
    """Waits for nothing, and remembers for how long."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def sent(
    words: str | Target,
    message: Message = MESSAGE,
    *,
    private: bool = True,
    pauses: Pauses | None = None,
    mail: MailSettings | None = None,
    seconds: float = 20,
) -> Delivery:
    """To this target."""
    notifier = Notifier(
        Webhooks(private, seconds),
        MailSender(mail or MailSettings(), seconds),
        Pauses() if pauses is None else pauses,
    )
    target = target_of(words, files=True) if isinstance(words, str) else words
    return await notifier.send(WATCH, target, message)
