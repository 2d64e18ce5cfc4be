"""Whose certificates are trusted, by webhooks and by e-mail."""

from __future__ import annotations

from ssl import SSLContext

import httpx

from api.notifying.undelivered import Undelivered


def trusted() -> SSLContext:
    """Those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else the usual ones.

    Raises:
        Undelivered: the file is none.
    """
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        words = "no certificates can be read; correct or unset `SSL_CERT_FILE`"
        raise Undelivered("not_configured", words) from error
