"""Whether a sentence is about a theme, or only uses its word.

Strict, since a wrong passage is worse than a missing one: a word that names where or by what
something happens (`it was on screen`), tells one product from another (`the WiFi doorbell`) or
belongs to somebody else (`the Gmail app`) shows nothing; nor does a list of what a text will treat.
"""

from __future__ import annotations

import regex

from api.core.text import fold
from api.core.words import stop_words
from api.reports.keyless.aspects import aspects_in
from api.reports.keyless.polarity import count_feelings, is_english
from api.reports.keyless.product_mentions import Subject

KIND = "app"
"""A theme that says nothing where it is the kind of thing itself: `Bolt app took a fee`."""
# right before a theme, where, by what or since when something happens: `found over |Bluetooth`,
# `look in the |app`, `even after the |updates`; what it is compared with or does without: `off
# compared with my |chest belt`, `needs neither |battery nor screen`
_CIRCUMSTANCE = regex.compile(
    r"(?i)\b(?:even after|in|on|off|onto|into|via|over|through|by|using|inside|from|per"
    r"|compared (?:to|with)|than|unlike|versus|neither|nor|im|auf|sur|dans)"
    r"(?:\s+(?:the|its|my|a|an|your|their|our|this|that|dem|der|la|le|les)(?:\s+[\p{L}-]+)?)?\s+$"
)
# right before a theme, what people make with a product: `made a bike bell |app`
_MADE = regex.compile(
    r"(?i)\b(?:made|make|built|build|building|wrote|coded|created)\s+(?:an?|my|our|some|any)\s+"
    r"(?:[\p{L}-]+\s+){0,2}$"
)
# right before a theme that a clause opens with: `I love it, the |battery is`
_CLAUSE_OPENING = regex.compile(
    r"(?i)(?:[，；：。！？、]|[.,:;!?–—]\s|\b(?:and|but|und|aber|y|pero|et|mais)\s)\W*(?:(?:the|its|my|their|your|der|die|das"
    r"|el|la|los|las|le|les)\s)?$"
)
# right after a theme that only says a kind: `the app-|controlled mug`, `ride-|hailing`
_COMPOUND = regex.compile(r"-(?!là|ci)\p{Ll}")
# right after a theme, a thing whose kind it names: `two bluetooth |devices`, `sleep |ids`
_THINGS = regex.compile(
    r"(?i)(?<!\s)\s++(?:devices?|adapt[eo]rs?|accessor(?:y|ies)|builders?|apps?"
    r"|ids?|keys?|tokens?|runs?|fields?|endpoints?|names?|levels?|numbers?|calls?|icons?|brands?)\b"
)
# right before a theme, a program that is named after the product: `notion-|sync`
_PROGRAM = regex.compile(r"([\p{L}\p{N}]+)-$")
# a lost cable is no news of the battery: `lost the |cable, could not charge it`
_CORD = regex.compile(r"\b(?:cables?|chargers?|adapt[eo]rs?|plugs?)\b", regex.I)
# the word after a theme, or the one after that
_AFTER = regex.compile(r"(?<!\s)(?:\s++[\p{L}-]++)??\s++([\p{L}\p{N}]+)")
# right before a theme, its owner: a capital inside a sentence or inside the word: `the Gmail |app`,
# `myBank |app`, `the Spotify Android |app`
_OWNER = regex.compile(
    r"(?:(?<=\S\s)\p{Lu}[\p{L}\p{N}]+|\p{Ll}+\p{Lu}\p{L}*)"
    r"(?=(?:['’]s)?\s+(?:(?:Android|iOS|iPhone|iPad|Mac|Windows|web|desktop|mobile)\s+)?$)"
)
# what a text will treat: `here is the truth on`, `we test`, `in this video`, `sync, export, and
# whether you need it`; or news: `plaud announces the Pro`
_ANNOUNCING = regex.compile(
    r"(?i)\b(?:here(?:'s| is| are) (?:the|my|our|what|how)|in this (?:video|review|post|guide"
    r"|episode)"
    r"|(?:we|i|let's|let us|i'll|we'll) (?:will |also )?(?:test|compare|cover|discuss|explain"
    r"|look at|talk about|walk (?:you )?through|go (?:over|through))"
    r"|(?:[\p{L}-]+, ){2,}and (?:whether|how|why|what) (?:you|we|i|it|to)"
    r"|(?:announces|launches|unveils|introduces|releases) (?:the|an?|its|their|new))\b"
)
# a table of contents, whatever it feels like: `What it cost, how it compares and why I sold it`,
# `Battery, scratches and whether it is worth it`
_CONTENTS = regex.compile(
    r"(?i)^\W*+(?:what|how|why|whether|where|when)\b[^,]*+,.*\b(?:and|or) (?:what|how|why|whether"
    r"|if)\b"
    r"|^\W*+(?:what|how|why|whether|where|when)\b[^,:?]*+, (?:which|what|how|why|whether|who)\b"
    r"|^\W*+[\p{L} ]++, .*\b(?:and|or) whether\b"
)
# a title that only names its own kind: `90 days - honest review`, `Long-term test: ...`
_TITLE = regex.compile(
    r"(?i)[-–—|:(] ?(?:my |an? |the )?(?:honest |full |long-term )*(?:review|unboxing|vlog)\W*$"
    r"|^\W*(?:(?:honest|full|long[- ]term) )*(?:test|review|unboxing|comparison)\b\s*[:|–—-]"
)
# counts set side by side: `9 months, 4 pen tips, 1 big complaint`
_TALLY = regex.compile(r"(?:\b\d++ [\p{L}\- ]++, ){2,}\d++ [\p{L}\- ]++$")
# what a text will treat, in other languages: `Testei tradução, câmera e bateria`,
# `续航、影像、发热全测`
_TESTING = regex.compile(
    r"(?i)^\W*+(?:testei|testamos|probé|probamos|analizamos|j'ai testé|on a testé|nous testons"
    r"|ich teste|wir testen)\b|、.*[全实評评][测測]"
)
# a step of what somebody did or is to do, or a field of a form: `2. Cut the power of the coaster`,
# `**Expected:** it syncs`
_STEP = regex.compile(r"^\d{1,2}[.)]\s|^\W*+(?:expected|actual|environment|version):", regex.I)
# code, what stands in brackets, and several words in quotation marks, which are somebody else's (two may be a term:
# `their “activation fees”`):
# `(signed in with an account)`, `asked for the 'purpose of the hinge'`
_INSERTED = regex.compile(
    r"`[^`]*`|\([^()]*\)"
    r"|(?<!\w)(?:'[^'\s]++ [^']++'(?!\w)|\"[^\"\s]++ [^\"\s]++ [^\"]++\"|“[^”\s]++ [^”\s]++ [^”]++”)"
)
# what a statement has and an enumeration lacks: somebody, or a small verb
STATING = regex.compile(
    r"(?i)\b(?:is|are|was|were|be|been|am|has|have|had|do|does|did|can|could|will|would|should|may"
    r"|might|must|cannot|I|you|we|they|he|she|it|this|that|who|which)\b|['’](?:s|re|ve|m|ll|t)\b"
)
_STATING_FOREIGN = regex.compile(
    r"(?i)\b(?:ist|sind|war|hat|haben|habe|wird|kann|ich|wir|man|nicht|mir|es|son|está|fue|tiene"
    r"|hay|no|que|est|sont|ont|ai|je|il|elle|on|ne|pas|é|são|tem|não|eu|foi)\b|['’](?:est|ai)\b"
)
# Aspects in one sentence without a word of feeling from which it is a table of contents.
_LISTED = 3
# an instruction to the reader: `Leave it off the charger`, `Try the cable`, `Make sure`
INSTRUCTION = regex.compile(
    r"(?i)^\W*(?:(?:please|just|pro ?tip|tip|first|then|also|always|never|don't|do not)\W+)*"
    r"(?:leave|put|use|try|reset|restart|clean|wash|wipe|keep|turn|check|make sure|remove|unplug"
    r"|plug|install|buy|get|ask|go|set|hold|press|open|see|look|send|call|delete|log|take"
    r"|forget)\b(?!\s+(?:is|was|are|were|has|had|works?|up took)\b)"
    # and in other languages: `Con turnos cambia la hora a mano`
    r"|^\W*+(?:(?:con|para|si|bei|mit|für|wenn|avec|pour) (?:\S+ )??\S+ )?"
    r"(?:cambia|pon|usa|prueba|quita|deja|revisa|stell|probier|lass|nimm|essaye[rz]?|mett(?:s|ez)"
    r"|utilise[rz]?|tente|coloque|troque) (?!(?:er|sie|es|il|elle) )"
)


def is_about_theme(sentence: str, theme: regex.Pattern[str], subject: Subject) -> bool:
    """Whether some word of the theme is what a sentence about the product speaks of."""
    text = sentence.replace("’", "'")
    rest = _INSERTED.sub(lambda match: " " * len(match[0]), text)
    own = rest if rest.strip(" .!?") else text  # the whole sentence may be a quotation
    matches = list(theme.finditer(own))
    if not matches or _is_no_statement(text):
        return False
    return any(not _is_side_mention(text, *match.span(), subject) for match in matches)


def is_led_by(sentence: str, theme: regex.Pattern[str]) -> bool:
    """Whether a theme stands in the first third of a sentence, or a clause of it begins with the theme."""
    text = sentence.replace("’", "'")
    matches = theme.finditer(text)
    return any(3 * match.start() <= len(text) or _CLAUSE_OPENING.search(text[: match.start()]) for match in matches)


def _is_no_statement(text: str) -> bool:
    """Whether a sentence only announces, lists or instructs."""
    if any(rule.search(text) for rule in (_CONTENTS, _TITLE, _TALLY, _TESTING)):
        return True
    if any(count_feelings(text)):
        return False
    stating = STATING if is_english(fold(text)) else _STATING_FOREIGN
    parts = text.split(": ")  # `We open it: projector, battery, magnets.`
    if _STEP.match(text) or any(p.count(",") > 1 and not stating.search(p) for p in parts):
        return True
    if _ANNOUNCING.search(text) or INSTRUCTION.search(text):
        return True
    # in other languages no word of feeling is known, so only what is written as a list is one
    listing = is_english(text) or text.count(",") > 1
    return listing and len(aspects_in(text)) >= _LISTED


def _is_side_mention(text: str, start: int, end: int, subject: Subject) -> bool:
    before, word, after = text[:start], fold(text[start:end]), text[end:]
    if _COMPOUND.match(after) or _THINGS.match(after):
        return True
    if _CIRCUMSTANCE.search(before) or _MADE.search(before):
        return True
    if word.startswith("charg") and _CORD.search(text):
        return True
    if word == KIND and subject.pattern.fullmatch(before.strip()):
        return True
    program = _PROGRAM.search(before)
    if program is not None and subject.is_named(program[1]):
        return True
    following = _AFTER.match(after)
    if following is not None and fold(following[1]) in subject.known - stop_words("en"):
        return True
    owner = _OWNER.search(before) if is_english(text) else None
    return owner is not None and not (subject.is_named(owner[0]) or subject.is_known(owner[0]))
