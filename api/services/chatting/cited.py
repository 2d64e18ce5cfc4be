"""What a chat answer may say, checked while it is being written, sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import regex

from api.services.reporting.dossier import Exhibit
from api.services.reporting.said import LABEL, LINK, numbers
from api.services.text import clean

_END = regex.compile(r"(?<=\n)|(?<=[.!?…])(?=[ \t])|(?<=[。！？])")
_LINKED = regex.compile(r"!?\[([^\[\]]*)\]\(\s*<?([^()\s<>]*)[^()]*\)")
_GROUP = regex.compile(r"[\[(]\s*E\d+(?:\s*(?:[,;&]|and)\s*E\d+)*\s*[\])]")
_TAG = regex.compile(r"<(?=[a-zA-Z/!?])")
_MARKER = regex.compile(r"^\s*\d{1,2}[.)](?=\s|$)")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a sentence may rest on at the moment."""

    exhibits: Mapping[str, Exhibit]
    """By label."""
    numbers: frozenset[str]
    """Numbers that the model was given."""
    words: frozenset[str]
    """Words of theirs that look like exhibit names (`E27`)."""
    urls: frozenset[str]


class Clearing:
    """Takes an answer in pieces and gives back what stands of it.

    Unknown exhibit names and foreign links go, and sentences with a number that nobody gave.
    """

    def __init__(self, ground: Callable[[], Ground]) -> None:
        """`ground` is asked for every sentence, since look-ups add to it."""
        self._ground = ground
        self._rest = ""
        self._cited: dict[str, None] = {}
        self._removed = {"citation(s)": 0, "link(s)": 0, "number(s)": 0}

    @property
    def cited(self) -> tuple[str, ...]:
        """Labels in the order of first mention."""
        return tuple(self._cited)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader is told was removed."""
        why = {
            "citation(s)": "unknown citation(s) removed",
            "link(s)": "link(s) that no exhibit holds removed",
            "number(s)": "number(s) that no exhibit holds, with their sentences, removed",
        }
        return tuple(f"{count} {why[what]}" for what, count in self._removed.items() if count)

    def feed(self, piece: str) -> str:
        """What is complete and stands."""
        *whole, self._rest = _END.split(self._rest + piece)
        return "".join(map(self._clear, whole))

    def close(self) -> str:
        """What is left over at the end."""
        last, self._rest = self._rest, ""
        return self._clear(last)

    def _clear(self, sentence: str) -> str:
        text, ground = clean(sentence), self._ground()
        before = sentence[: len(sentence) - len(sentence.lstrip())].replace("\r", "")
        after = "\n" if sentence.endswith("\n") and text else ""
        unsaid = [n for n in numbers(_MARKER.sub("", text)) if n not in ground.numbers]
        if unsaid:
            self._removed["number(s)"] += len(unsaid)
            return after
        plain = _LINKED.sub(lambda match: self._unlinked(match, ground), text)
        plain = LINK.sub(lambda match: self._allowed(match[0], ground), plain)
        plain = _GROUP.sub(lambda match: self._group(match[0], ground), plain)
        plain = LABEL.sub(lambda match: self._bare(match, ground), plain)
        return f"{before}{_TAG.sub('&lt;', _tidy(plain))}{after}"

    def _unlinked(self, match: regex.Match[str], ground: Ground) -> str:
        """A link to an exhibit as it is, any other as its words."""
        if match[2] in ground.urls and not match[0].startswith("!"):
            return str(match[0])
        if not LABEL.fullmatch(match[1]):
            self._removed["link(s)"] += 1
            return str(match[1])
        return f"[{match[1]}]"

    def _allowed(self, link: str, ground: Ground) -> str:
        bare = link.rstrip(".,;:!?")
        if bare in ground.urls:
            return link
        self._removed["link(s)"] += 1
        return link[len(bare) :]

    def _group(self, group: str, ground: Ground) -> str:
        labels = LABEL.findall(group)
        known = [label for label in labels if label in ground.exhibits]
        self._removed["citation(s)"] += len(labels) - len(known)
        self._cited |= dict.fromkeys(known)
        return f"[{', '.join(known)}]" if known else ""

    def _bare(self, match: regex.Match[str], ground: Ground) -> str:
        """A name outside brackets: a citation too, unless it is a word of theirs."""
        label = match[0]
        if label in self._cited or label in ground.words:
            return str(label)
        if label in ground.exhibits:
            self._cited[label] = None
            return str(label)
        self._removed["citation(s)"] += 1
        return ""


def _tidy(text: str) -> str:
    """Without the blanks that something removed left behind."""
    return regex.sub(r"[ \t]+(?=[.,;:!?](?:\s|$))", "", regex.sub(r"(?<=\S)[ \t]{2,}", " ", text))
