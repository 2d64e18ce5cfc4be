"""The words of a text that its author wrote: quotations, code, previews, polls and signatures left out.

What is left out becomes a line's end, so that every sentence of the rest stands in the text word for word.
"""

from __future__ import annotations

from bisect import bisect_right

import regex


def _at_start(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    """A pattern matched only at the start of a line, so that a line is not searched from each of its characters."""
    return regex.compile(rf"\A(?:{pattern})", flags)


# what opens or closes a part of somebody else: `<blockquote>`, `[quote="ann, post:3"]`, also with escaped brackets
_BLOCK = regex.compile(
    r"(?:<|&lt;)(?P<end>/?)(?:blockquote|details|pre|aside)\b[^<>&\n]{0,300}(?:>|&gt;)"
    r"|\[(?P<close>/?)(?:quote|code)\b[^\[\]\n]{0,300}\]",
    regex.I,
)
# a quoted line: `> The battery`, `&gt;&gt; it`, `| > it`; not `>!spoiler!<`, `>50 hours`, `>:(`
_QUOTED = _at_start(r"\s{0,3}(?:[|│]\s?)?(?:>|&gt;|＞|»(?=\s))++(?!\s*+$)(?![!\d]|[:;=][-']?[()DPp/\\|])")
_BARE_MARK = _at_start(r"\s*(?:(?:>|&gt;)\s*)+$")
# code between three signs or more: "```text", `~~~`
_FENCE = _at_start(r"\s{0,3}(?P<sign>`{3,}|~{3,})")
# who wrote what follows, in a mail or a forum: `On 3 May 2025, Ann wrote:`, `Am 3.5. schrieb Ann:`, `Zitat von Ann:`
_HEADER = _at_start(
    r"\W*(?:(?:on|am|le|el|em|il|op|den|w dniu)\s.{1,200}?\b(?:wrote|schrieb|a [ée]crit|escribi[óo]|escreveu|ha scritto"
    r"|schreef|skrev|napisał\(?a?\)?)\b.{0,120}?\s?:"
    r"|.{1,120}(?:写道|寫道|のメール|が書きました|さんは書きました)\s?[:：]"
    r"|-{2}\s?(?:original message|forwarded message|urspr[üu]ngliche nachricht|message d'origine|mensaje original"
    r"|mensagem original)\s?-{2,}"
    r"|(?:zitat von|quote from|quote:|quoting|originally posted by|citation de|cita de)\b.{0,120}?:?)\s*$",
    regex.I,
)
_HEADER_START = _at_start(r"\W*+(?:on|am|le|el|em|il|op)\s.{1,160}$", regex.I)
_REPLY_TO = _at_start(r"\W*[@\w .-]{1,40}\s(?:said|wrote|schrieb|dijo|a dit)\s?:\s?↑?\s*$", regex.I)
_QUOTED_LINES = 40  # lines between `Ann said:` and `Click to expand` at most
_EXPAND = _at_start(r"\W*+click to expand\W*$", regex.I)
# `-- ` alone in a line, and what programs write under a text
_SIGNED = _at_start(r"(?:--|—|__+)\s*$")
_FOOTER = _at_start(
    r"\W*+(?:(?:sent|posted) (?:from|via|using) (?:my )?[\w .']{2,40}$"
    r"|(?:von meinem .{2,40} gesendet|gesendet (?:von|mit) .{2,40})$"
    r"|envoy[ée] (?:de|depuis) mon .{2,40}$|enviad[oa] (?:desde|do) (?:mi|meu) .{2,40}$|get outlook for \w+"
    r"|i(?:'| a)m a bot\b.*|beep,? boop\b.*|submitted by\s+/?u/.*)",
    regex.I,
)
_SIGNATURE_LINES = 6  # lines under `--` at most; more is a text with a line across
# a link or picture alone in a line, whose words are the page's: `[A headline](https://...)`, `![alt](...)`
_PREVIEW = _at_start(r"\W*!?\[[^\[\]]*+\]\([^()\s]++(?:\s[^()]*)?\)\W*$")
_PICTURE = regex.compile(r"!\[[^\[\]]{0,300}\]\([^()]{0,500}\)")
_ADDRESS = _at_start(r"\W*+(?:https?://|www\.)\S++\W*$", regex.I)
# the headline of a page right above or below its address: `The battery is bad | The Verge`
_HEADLINE = _at_start(r"[^.!?\n]{8,200}\s[|–—·-]\s[^.!?\n|]{2,40}$")
_RETWEET = _at_start(r"\W*+(?:RT|QT|MT)\s@\w+", regex.ASCII)
# a poll, its question or its end, and its options: `[View Poll](...)`, `Poll: Which one?`, `( ) never`, `- 41 votes`
_POLL = _at_start(
    r"\W*+(?:view poll\b.*|polls?(?: options?)?\s?:.*|umfrage\s?:.*|vote (?:below|here)\s?:?\s*)$", regex.I
)
_OPTION = _at_start(r"\s*(?:[-*•+]|\d{1,2}[.)]|[a-z][.)]|[(\[][ xX]?[)\]]|[○●◯☐☑⚪🔘])\s*\S")
_CHOICE = _at_start(
    r"\s*(?:[(\[][ xX]?[)\]]|[○●◯☐☑⚪🔘])\s*\S|.{0,300}\b\d[\d,.]{0,14} ?(?:%|votes?)(?: \([\d.]+ ?%\))?\s*$"
)
_SPOILER_LINE = _at_start(r"\s*:::+(?:\s*(?:spoiler|hidden)\b.*)?\s*$", regex.I)
_SPOILER_MARK = regex.compile(r">!|!<|\|\||</?spoiler>|\[/?spoiler[^\[\]\n]{0,80}\]", regex.I)
_LIST = _at_start(r"\s*(?:[-*•+]|\d{1,3}[.)])\s")


def own_words(text: str) -> str:
    """The text without what its author did not write; in linear time."""
    lines = _without_blocks(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    written = [number for number, line in enumerate(lines) if line.strip()]
    kept: list[str] = []
    fence, code, last, poll = "", False, "", False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        mark = _FENCE.match(line)
        if fence or mark:
            if mark and not fence:
                fence = mark["sign"]
            elif mark and mark["sign"].startswith(fence):
                fence = ""
            kept.append("")
            continue
        if not line.strip():
            kept.append("")
            continue
        # Markdown's other code: four blanks after an empty line, outside a list
        indented = line.startswith(("    ", "\t"))
        code = indented and (code or (number > 0 and not kept[-1] and not _LIST.match(last)))
        if not indented:
            last = line
        split = _HEADER_START.match(line) and _HEADER.match(f"{line.strip()} {following.strip()}")
        if _HEADER.match(line) or (split and not _HEADER.match(following) and following.strip().endswith((":", "："))):
            at = bisect_right(written, number if _HEADER.match(line) else number + 1)
            answer = lines[written[at]] if at < len(written) else ""
            if not (_QUOTED.match(answer) or _BARE_MARK.match(answer)):
                break  # the rest is the other mail
            kept.append("")
            continue
        if _REPLY_TO.match(line):
            near = enumerate(lines[number + 1 : number + _QUOTED_LINES], number + 1)
            end = next((at for at, entry in near if _EXPAND.match(entry)), None)
            if end is not None:
                lines[number : end + 1] = [""] * (end + 1 - number)
                kept.append("")
                continue
        if _SIGNED.match(line) and written[-1] - number <= _SIGNATURE_LINES:
            break
        poll = bool(_POLL.match(line)) or (poll and bool(_OPTION.match(line)))
        kept.append("" if code or poll or _is_foreign(line, last, following, lines, number) else _plain(line))
    return "\n".join(kept)


def _is_foreign(line: str, last: str, following: str, lines: list[str], number: int) -> bool:
    """Whether a line is a quotation, a preview, a poll's option, a mark or a program's footer."""
    rules = (_QUOTED, _BARE_MARK, _PREVIEW, _FOOTER, _RETWEET, _SPOILER_LINE, _CHOICE)
    if any(rule.match(line) for rule in rules):
        return True
    before = lines[number - 1] if number else ""
    return _HEADLINE.match(line.strip()) is not None and bool(_ADDRESS.match(following) or _ADDRESS.match(before))


def _plain(line: str) -> str:
    """A line with an end where a picture's words or a spoiler's marks stood."""
    return _SPOILER_MARK.sub("\n", _PICTURE.sub("\n", line)) if "!" in line or "|" in line or "poiler" in line else line


def _without_blocks(text: str) -> str:
    """The text without quotations, code and folded parts between tags."""
    parts, depth, at = [], 0, 0
    for match in _BLOCK.finditer(text):
        closing = bool(match["end"] or match["close"])
        if not depth:
            parts.append(text[at : match.start()])
        depth = max(0, depth - 1) if closing else depth + 1
        at = match.end()
    if not depth:
        parts.append(text[at:])
    return "\n".join(parts)
