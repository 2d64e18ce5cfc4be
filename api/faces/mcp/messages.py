"""What comes in and is no message: half a character is mended, the rest refused in our words."""

from __future__ import annotations

import mcp_types as types
import regex

from api.errors import UsageError

# an escape of JSON: both halves of an emoji, `half` of one (such as `\ud83d`), or any other (`\\`)
_ESCAPE = regex.compile(
    r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?<half>u[dD][89a-fA-F]..)|.)", regex.S
)


def mended(text: str) -> str:
    """The JSON with U+FFFD for every half of a character, which the library's parser refuses."""
    whole: str = _ESCAPE.sub(
        lambda escape: r"\ufffd" if escape["half"] is not None else escape[0], text
    )
    return whole


def refusal(code: int, words: str) -> types.JSONRPCError:
    """The protocol's error for what has no id that could be read."""
    error = types.ErrorData(code=code, message=f"{UsageError.code}: {words}")
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
