"""What a client would rather have: `Accept` with its q-values."""

from __future__ import annotations

from email.message import Message

from api.faces.web.events import MEDIA_TYPE


def accepted(accept: str) -> dict[str, float]:
    """Media types that an `Accept` header names with their q-values, the best liked first.

    What is refused (`q=0`) is not among them; a q-value that is none counts as 1.
    """
    liked: dict[str, float] = {}
    for part in accept.split(","):
        message = Message()
        message["content-type"] = part.strip()
        try:
            quality = float(str(message.get_param("q", "1")))
        except ValueError:
            quality = 1.0
        liked[part.partition(";")[0].strip().lower()] = quality
    ranked = sorted(liked.items(), key=lambda pair: -pair[1])
    return {media: quality for media, quality in ranked if quality > 0}


def wants_events(accept: str) -> bool:
    """Whether a stream is named, and JSON is not liked better."""
    liked = accepted(accept)
    return liked.get(MEDIA_TYPE, 0) >= liked.get("application/json", 0) and MEDIA_TYPE in liked


def wants_page(accept: str) -> bool:
    """Whether a browser shows the answer to a person: HTML is named, and liked better than JSON."""
    liked = accepted(accept)
    return liked.get("text/html", 0) > liked.get("application/json", 0)
