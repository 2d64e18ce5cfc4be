"""Text as text in markdown: no word of a stranger or a model becomes a link, an image or HTML."""

from __future__ import annotations

import html

import regex

from api.core.text import clean, one_line, web_url

_SPECIAL = regex.compile(r"([\\`*_\[\]<>#|~!{}()$&])")
_LEAD = regex.compile(r"^(\d*)([-+=.])")
_LINKING = regex.compile(r"([\\`\[\]])")
# What begins an HTML tag or an autolink: `<b`, `</b`, `<!--`, `<https:`.
_TAG = regex.compile(r"<(?=[a-zA-Z/!?])")
# What would be decoded: `&lt;`, `&#91;`.
_ENTITY = regex.compile(r"&(?=#?\w{1,32};)")
# What links by itself where a renderer looks for addresses: `https:`, `www.`, `a@b`.
_SELF_LINKING = regex.compile(r"(?i)(?<![a-z0-9])(?:(?:https?|ftp|mailto|xmpp)(?=:)|www(?=\.))|(?<=\S)(?=@\S)")
_IN_ADDRESS = {"(": "%28", ")": "%29", "`": "%60", "[": "%5B", "]": "%5D"}

# What `md` and `formatted` escape.
_ESCAPED = regex.compile(r"\\([\\`*_\[\]<>#|~!{}()$&+=.-])")
# An end of such a text of which the next characters decide what it is: `\\`, `&`, `&am`, `&#9`.
_UNDECIDED = regex.compile(r"(?<!\\)(?:\\*+&\\*+#?+\w{0,32}+|\\++)\Z")
_INNER = str.maketrans(dict.fromkeys("“„‟«", "‘") | dict.fromkeys("”»", "’") | dict.fromkeys('"″＂〝〞', "'"))
# What looks like a citation of ours: `[E1]`, `[2]`, `[E1, E2]`.
_CITATION = regex.compile(r"\[(\s*+[Ee]?\d++(?:[\s,;]++[Ee]?\d++)*+\s*+)\]")


def quotation(words: str) -> str:
    """Strangers' words for between our marks: no quotation ends in them, and no label is ours."""
    return str(_CITATION.sub(r"(\1)", words.translate(_INNER)))


def md(text: object) -> str:
    """Any text as one line that markdown shows as it is."""
    line = unlinked(_SPECIAL.sub(r"\\\1", one_line(clean(text))))
    return str(_LEAD.sub(r"\1\\\2", line))


def formatted(text: str) -> str:
    """Text that may hold lists, headings and emphasis, but no link, image, code or HTML."""
    plain = _TAG.sub("&lt;", _LINKING.sub(r"\\\1", _ENTITY.sub("&amp;", text)))
    return unlinked(plain)


def unlinked(line: str) -> str:
    """The text with an invisible break in whatever would become a link by itself."""
    return str(_SELF_LINKING.sub(lambda match: f"{match[0]}\u200b", line))


def unformatted(text: str) -> str:
    """Markdown of ours as plain text: what `md` and `formatted` escaped, as it was written."""
    return html.unescape(_ESCAPED.sub(r"\1", text)).replace("\u200b", "")


def unformatted_piece(text: str) -> tuple[str, str]:
    """`unformatted` for a text that arrives in pieces: the converted text, and the end to put before the next piece.

    The end may be a part of an escape or entity, so it is not converted yet.
    """
    undecided = _UNDECIDED.search(text)
    decided = text if undecided is None else text[: undecided.start()]
    return unformatted(decided), text[len(decided) :]


def link(label: str, url: object) -> str:
    """A link, or the label alone when the URL is not http."""
    target = "".join(_IN_ADDRESS.get(sign, sign) for sign in web_url(url))
    return f"[{label}](<{target}>)" if target else label
