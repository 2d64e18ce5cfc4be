"""Settings of e-mail: what could not work, or would show a password, is refused at start."""

from __future__ import annotations

import pytest

from api.bootstrap import load_settings
from api.errors import ConfigurationError
from api.settings import MailSettings

PASSWORD = "sesame-42"


def loaded(monkeypatch: pytest.MonkeyPatch, **variables: str) -> MailSettings:
    """With these variables."""
    for name, value in variables.items():
        monkeypatch.setenv(f"LISTENPOST_SMTP_{name}", value)
    return load_settings().mail


def test_what_a_server_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, who sends, and perhaps who logs in."""
    mail = loaded(
        monkeypatch, HOST="smtp.example.org", FROM="lp@example.org", USER="ann",
        PASSWORD=PASSWORD, TLS="implicit", PORT="2465", TO="@example.org",
    )  # fmt: skip
    assert (mail.host, mail.port, mail.tls) == ("smtp.example.org", 2465, "implicit")
    assert (mail.sender, mail.user) == ("lp@example.org", "ann")
    assert PASSWORD not in repr(mail)
    assert mail.password is not None
    assert mail.password.get_secret_value() == PASSWORD


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"HOST": "smtp.example.org:587"}, "`LISTENPOST_SMTP_HOST`: needs the name of a server"),
        ({"HOST": "smtps://smtp.example.org"}, "without scheme and port"),
        ({"HOST": "a b"}, "`LISTENPOST_SMTP_HOST`"),
        ({"PORT": "0"}, "`LISTENPOST_SMTP_PORT`"),
        ({"TLS": "maybe"}, "`LISTENPOST_SMTP_TLS`"),
        ({"FROM": "Ann <ann@example.org>"}, "`LISTENPOST_SMTP_FROM`: needs one address such as"),
        ({"FROM": "ann@example.org\nBcc: eve@example.org"}, "`LISTENPOST_SMTP_FROM`"),
        ({"TO": "example.org"}, "`LISTENPOST_SMTP_TO`: needs addresses or domains such as"),
        ({"USER": "ann"}, "come together; set both or none"),
        ({"PASSWORD": PASSWORD}, "come together; set both or none"),
        ({"USER": "ann", "PASSWORD": "sesäme"}, "take ASCII alone"),
        (
            {"USER": "ann", "PASSWORD": PASSWORD, "TLS": "none", "HOST": "smtp.example.org"},
            "`LISTENPOST_SMTP_TLS` of `none` would show the password",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    """Without what it holds."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(monkeypatch, **variables)
    assert words in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_server_on_this_machine_needs_no_encryption(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Nobody hears what is said to it."""
    mail = loaded(monkeypatch, HOST=host, USER="ann", PASSWORD=PASSWORD, TLS="none")
    assert mail.host == host


def test_who_may_be_told() -> None:
    """Addresses and whole domains, in any case; without any, of a key the sender's domain, else all."""
    usual, open_to_all = MailSettings(sender="lp@Example.org"), MailSettings(receivers="*")
    some = MailSettings(receivers="ann@example.org, @Example.com")
    for address, allowed in {
        "Ann@example.org": True, "ben@example.org": False, "ben@example.com": True,
        "ben@sub.example.com": False, "ann@example.org.example.net": False,
    }.items():  # fmt: skip
        assert some.allows(address, keyed=True) is some.allows(address, keyed=False) is allowed
        assert usual.allows(address, keyed=False)
        assert usual.allows(address, keyed=True) is address.endswith("@example.org")
        assert open_to_all.allows(address, keyed=True)
    assert not MailSettings().allows("ann@example.org", keyed=True)
    assert (
        usual.refusal == "mail of API keys' watches goes to `Example.org` alone; `LISTENPOST_SMTP_TO` can name others"
    )
    assert some.refusal == "`LISTENPOST_SMTP_TO` does not name it"
