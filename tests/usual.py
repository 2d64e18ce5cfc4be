"""What a test runs in unless it says otherwise: offline, over the places with most to find."""

from __future__ import annotations

from api.sources import ASKABLE_SOURCES

USUAL = {"LISTENPOST_MODE": "sandbox", "LISTENPOST_SOURCES": "reddit,youtube,amazon"}
*_OTHERS, _LAST = (f"`{name}`" for name in ASKABLE_SOURCES)
EITHER = f"{', '.join(_OTHERS)} or {_LAST}"
"""All places and the archive, as a refusal names them."""
