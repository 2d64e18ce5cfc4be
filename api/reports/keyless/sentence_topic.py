"""Whether a sentence speaks of a theme, or only holds its word beside the point.

Less is better: a word that names where or by what something happens (`it was on screen`), that
tells one product from another (`the WiFi doorbell`) or belongs to somebody else (`the Gmail app`)
shows nothing about the theme; nor does a list of what a text will treat.
"""

from __future__ import annotations

import regex

from api.core.text import fold
from api.core.words import stop_words
from api.reports.keyless.aspects import aspects_in
from api.reports.keyless.polarity import feelings, is_english
from api.reports.keyless.subjects import Subject

KIND = "app"
"""A theme that says nothing where it is the kind of thing itself: `Bolt app took a fee`."""
# where, by what or since when something happens: `found over |Bluetooth`, `look in the |app`,
# `flat by lunch, even after the |updates`; what it is weighed against or does without: `way off
# compared with my |chest belt`, `needs neither |battery nor screen`
_BESIDE = regex.compile(
    r"\b(?:even after|in|on|off|onto|into|via|over|through|by|using|inside|from|per"
    r"|compared (?:to|with)|than|unlike|versus|neither|nor|im|auf|sur|dans)"
    r"(?:\s+(?:the|its|my|a|an|your|their|our|this|that|dem|der|la|le|les)(?:\s+[\p{L}-]+)?)?\s+$",
    regex.I,
)
# what people make with a product, none of its own: `made a bike bell |app`
_MADE = regex.compile(
    r"\b(?:made|make|built|build|building|wrote|coded|created)\s+(?:an?|my|our|some|any)\s+"
    r"(?:[\p{L}-]+\s+){0,2}$",
    regex.I,
)
# what stands before a theme that a clause is about: `The old |battery`, `I love it, |battery is`
_BEGINNING = regex.compile(
    r"(?:^|[，；：。！？、]|[.,:;!?–—(-]\s|\b(?:and|but|und|aber|y|pero|et|mais)\s"
    r"|\b(?:the|its|my|their|your|this|that|no|der|die|das|den|el|la|los|las|le|les|l'|l’)\s?)"
    r"\W*(?:[\p{L}-]+\s+)?$",
    regex.I,
)
# a word that says of what kind something is: `the app-|controlled mug`, `ride-|hailing`
_COMPOUND = regex.compile(r"-(?!là|ci)\p{Ll}")
# things of a kind that a word only names: `two bluetooth |devices`, `the driver |app`, `sleep |ids`
_THINGS = regex.compile(
    r"(?<!\s)\s++(?:devices?|adapt[eo]rs?|accessor(?:y|ies)|builders?|apps?"
    r"|ids?|keys?|tokens?|runs?|fields?|endpoints?)\b",
    regex.I,
)
# a program that is named after the product: `notion-|sync`
_PROGRAM = regex.compile(r"([\p{L}\p{N}]+)-$")
# a lost cable is no news of the battery: `lost the |cable, could not charge it`
_CORD = regex.compile(r"\b(?:cables?|chargers?|adapt[eo]rs?|plugs?)\b", regex.I)
_BEHIND = regex.compile(r"(?<!\s)(?:\s++[\p{L}-]++)??\s++([\p{L}\p{N}]+)")
# whose it is, with a capital inside a sentence or inside the word: `the Gmail |app`, `myBank |app`,
# `the Spotify Android |app`
_OWNER = regex.compile(
    r"(?:(?<=\S\s)\p{Lu}[\p{L}\p{N}]+|\p{Ll}+\p{Lu}\p{L}*)"
    r"(?=(?:['’]s)?\s+(?:(?:Android|iOS|iPhone|iPad|Mac|Windows|web|desktop|mobile)\s+)?$)"
)
# what a text will treat, told before it does: `here is the truth on`, `we test`,
# `in this video`, `sync, export, and whether you need it`; or news: `plaud announces the Pro`
_ANNOUNCING = regex.compile(
    r"\b(?:here(?:'s| is| are) (?:the|my|our|what|how)|in this (?:video|review|post|guide|episode)"
    r"|(?:we|i|let's|let us|i'll|we'll) (?:will |also )?(?:test|compare|cover|discuss|explain"
    r"|look at|talk about|walk (?:you )?through|go (?:over|through))"
    r"|(?:[\p{L}-]+, ){2,}and (?:whether|how|why|what) (?:you|we|i|it|to)"
    r"|(?:announces|launches|unveils|introduces|releases) (?:the|an?|its|their|new))\b",
    regex.I,
)
# a table of contents, whatever it feels like: `What it cost, how it compares and why I sold it`,
# `Battery, scratches and whether it is worth it`
_CONTENTS = regex.compile(
    r"^\W*+(?:what|how|why|whether|where|when)\b[^,]*+,.*\b(?:and|or) (?:what|how|why|whether|if)\b"
    r"|^\W*+(?:what|how|why|whether|where|when)\b[^,:?]*+, (?:which|what|how|why|whether|who)\b"
    r"|^\W*+[\p{L} ]++, .*\b(?:and|or) whether\b",
    regex.I,
)
# what names its own kind and tells nothing: `90 days - honest review`, `Long-term test: ...`
_TITLE = regex.compile(
    r"[-–—|:(] ?(?:my |an? |the )?(?:honest |full |long-term )*(?:review|unboxing|vlog)\W*$"
    r"|^\W*(?:(?:honest|full|long[- ]term) )*(?:test|review|unboxing|comparison)\b\s*[:|–—-]",
    regex.I,
)
# counts set side by side: `9 months, 4 pen tips, 1 big complaint`
_TALLY = regex.compile(r"(?:\b\d++ [\p{L}\- ]++, ){2,}\d++ [\p{L}\- ]++$")
# who tells in another language what a text will treat: `Testei tradução, câmera e bateria`,
# `续航、影像、发热全测`
_TESTING = regex.compile(
    r"^\W*+(?:testei|testamos|probé|probamos|analizamos|j'ai testé|on a testé|nous testons"
    r"|ich teste|wir testen)\b|、.*[全实評评][测測]",
    regex.I,
)
# a step of what somebody did or is to do, or a field of a form: `2. Cut the power of the coaster`,
# `**Expected:** it syncs`
_STEP = regex.compile(r"^\d{1,2}[.)]\s|^\W*+(?:expected|actual|environment|version):", regex.I)
# what is not a sentence's own: code, what stands in brackets, several words of somebody else's in
# quotation marks: `(signed in with an account)`, `asked for the 'purpose of the hinge'`
_INSERTED = regex.compile(
    r"`[^`]*`|\([^()]*\)"
    r"|(?<!\w)(?:'[^'\s]++ [^']++'(?!\w)|\"[^\"\s]++ [^\"]++\"|“[^”\s]++ [^”]++”)"
)
# what a statement has and an enumeration lacks: somebody, or a small verb
_STATING = regex.compile(
    r"\b(?:is|are|was|were|be|been|am|has|have|had|do|does|did|can|could|will|would|should|may"
    r"|might|must|cannot|I|you|we|they|he|she|it|this|that|who|which)\b|['’](?:s|re|ve|m|ll|t)\b",
    regex.I,
)
_STATING_ELSEWHERE = regex.compile(
    r"\b(?:ist|sind|war|hat|haben|habe|wird|kann|ich|wir|man|nicht|mir|es|son|está|fue|tiene|hay|no|que"
    r"|est|sont|ont|ai|je|il|elle|on|ne|pas|é|são|tem|não|eu|foi)\b|['’](?:est|ai)\b",
    regex.I,
)
# Aspects in one sentence without an English word of feeling: a table of contents.
_LISTED = 3
# what to do, told to a reader: `Leave it off the charger`, `Try the cable`, `Make sure`
_TELLING_TO = regex.compile(
    r"^\W*(?:(?:please|just|pro ?tip|tip|first|then|also|always|never|don't|do not)\W+)*"
    r"(?:leave|put|use|try|reset|restart|clean|wash|wipe|keep|turn|check|make sure|remove|unplug"
    r"|plug|install|buy|get|ask|go|set|hold|press|open|see|look|send|call|delete|log|take"
    r"|forget)\b(?!\s+(?:is|was|are|were|has|had|works?|up took)\b)"
    # and in other languages: `Con turnos cambia la hora a mano`
    r"|^\W*+(?:(?:con|para|si|bei|mit|für|wenn|avec|pour) (?:\S+ )??\S+ )?"
    r"(?:cambia|pon|usa|prueba|quita|deja|revisa|stell|probier|lass|nimm|essaye[rz]?|mett(?:s|ez)"
    r"|utilise[rz]?|tente|coloque|troque) (?!(?:er|sie|es|il|elle) )",
    regex.I,
)


def speaks_of(sentence: str, theme: regex.Pattern[str], subject: Subject) -> bool:
    """Whether some word of the theme is what a sentence about the product speaks of."""
    text = sentence.replace("’", "'")
    rest = _INSERTED.sub(lambda match: " " * len(match[0]), text)
    own = rest if rest.strip(" .!?") else text  # a sentence that is a quotation whole
    sightings = [match.span() for match in theme.finditer(own)]
    if not sightings or _is_aside(text):
        return False
    return any(not _is_beside(text, *span, subject) for span in sightings)


def speaks_plainly(sentence: str, theme: regex.Pattern[str], subject: Subject) -> bool:
    """Whether a sentence says by itself that a theme is the product's.

    It names the product, or a clause begins with the theme, or with whose it is: `the battery`.
    """
    text = sentence.replace("’", "'")
    return subject.is_named(text) or any(
        _BEGINNING.search(text[: match.start()]) for match in theme.finditer(text)
    )


def _is_aside(text: str) -> bool:
    """Whether a sentence only announces, lists or instructs."""
    if any(rule.search(text) for rule in (_CONTENTS, _TITLE, _TALLY, _TESTING)):
        return True
    if any(feelings(text)):
        return False
    english = is_english(fold(text))
    stating = _STATING if english else _STATING_ELSEWHERE
    parts = text.split(": ")  # `We open it: projector, battery, magnets.`
    if _STEP.match(text) or any(p.count(",") > 1 and not stating.search(p) for p in parts):
        return True
    announcing = _ANNOUNCING.search(text) or _TELLING_TO.search(text)
    # in another language no word of feeling is known: only what is written as a list is one
    listing = is_english(text) or text.count(",") > 1
    return announcing is not None or (listing and len(aspects_in(text)) >= _LISTED)


def _is_beside(text: str, start: int, end: int, subject: Subject) -> bool:
    before, after = text[:start], text[end:]
    aside = _COMPOUND.match(after) or _THINGS.match(after)
    if fold(text[start:end]).startswith("charg") and _CORD.search(text):
        return True
    if aside or _BESIDE.search(before) or _MADE.search(before):
        return True
    if fold(text[start:end]) == KIND and subject.pattern.fullmatch(before.strip()):
        return True
    program = _PROGRAM.search(before)
    if program is not None and subject.is_named(program[1]):
        return True
    behind = _BEHIND.match(after)
    if behind is not None and fold(behind[1]) in subject.stated - stop_words("en"):
        return True
    owner = _OWNER.search(before) if is_english(text) else None
    return owner is not None and not (subject.is_named(owner[0]) or subject.is_known(owner[0]))
