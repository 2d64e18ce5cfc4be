"""What a test runs in unless it says otherwise: offline, over the places with most to find."""

from __future__ import annotations

USUAL = {"LISTENPOST_MODE": "sandbox", "LISTENPOST_SOURCES": "reddit,youtube,amazon"}
