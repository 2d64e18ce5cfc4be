"""The server that takes the e-mail of watches, as whom, and to whom."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from api.settings.addresses import MailAddress, MailServer, is_mail_address
from api.settings.groups import named

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def _receivers(text: str) -> str:
    if not all(is_mail_address(f"a{name}" if name[0] == "@" else name) for name in _names(text)):
        raise ValueError("needs addresses or domains such as `ann@example.org, @example.com`")
    return text


def _names(text: str) -> list[str]:
    return [name.strip().lower() for name in text.split(",") if name.strip()]


class MailSettings(BaseSettings):
    """E-mail to those whom watches tell; without a host and a sender none is sent."""

    model_config = named("LISTENPOST_SMTP_")

    host: MailServer | None = None
    """Server that takes the mail; unset: none is sent."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Its port; unset: 587, 465 with `implicit`, 25 with `none`."""
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    """How the connection is encrypted; `none` only for a server that needs no password, or here."""
    user: str | None = None
    """Who logs in there; unset: nobody does."""
    password: SecretStr | None = None
    """Secret of that user."""
    sender: MailAddress | None = Field(None, validation_alias=AliasChoices("LISTENPOST_SMTP_FROM"))
    """Address that the mail comes from."""
    receivers: Annotated[str, AfterValidator(_receivers)] | None = Field(
        None, validation_alias=AliasChoices("LISTENPOST_SMTP_TO")
    )
    """Comma-separated addresses and `@domains` that may be told; unset: all."""

    def allows(self, address: str) -> bool:
        """Whether mail may go to this address."""
        names, lowered = _names(self.receivers or ""), address.lower()
        return not names or lowered in names or lowered[lowered.index("@") :] in names

    @model_validator(mode="after")
    def _logged_in(self) -> Self:
        names = "`LISTENPOST_SMTP_USER` and `LISTENPOST_SMTP_PASSWORD`"
        secret = self.password and self.password.get_secret_value()
        if bool(self.user) != bool(secret):
            raise ValueError(f"{names} come together; set both or none")
        if not f"{self.user}{secret}".isascii():
            raise ValueError(f"{names} take ASCII alone, as the servers do")
        if secret and self.tls == "none" and self.host not in _HERE:
            raise ValueError("`LISTENPOST_SMTP_TLS` of `none` would show the password to all")
        return self
