"""A question taken apart: its product or products, what is asked about them, and in which language.

One function does it for search, judges, comparisons, chat and display. Its words are in `question_words.toml`; the
languages are listed in `_SPACED` and `_SCRIPTS`. What a description excludes is read by `exclusions.py`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from tomllib import loads
from typing import Literal, NamedTuple, cast

import regex

from api.choices import MAX_QUESTION_LENGTH
from api.core.text import clean_query, one_line
from api.core.words import canonical, stem, stop_words
from api.pipeline.question.query_guard import compared_names, refers_back
from api.pipeline.question.query_screen import is_small_talk

ASKING_WORDS = frozenset(
    "a about actually amazon and annoys any are be best but buy buying can compare complain"
    " complaint complaints could dislike do does for from good happens has hate have how i in is it"
    " its like love me mention my of on opinion opinions or owners people really recommend reddit"
    " regret review reviews said say saying says should tell that the their them there they thing"
    " things think thinks this to use users versus vs want was what when where which who why will"
    " with worth would you your youtube".split()
)
"""Words of asking, and sources, which are no part of a product's name."""
# what is longer is a sentence
_MAX_NAME_WORDS = 4
# `plaud.ai` is also called `plaud`
_ENDING = regex.compile(r"\.(?:ai|com|io|app|co|new|net|org)$", regex.I)
_EDGE = "?!,;:.\"“”'()’‘"
# a part of a product, without a question: `the battery of the Framework laptop`
_PART = regex.compile(r"^\W*the \p{Ll}++ of (?:(?:the|my|an?) )?\S*[\p{Lu}\p{N}.]\S")
# what makes a sentence without a question mark a question
_OPINIONS = frozenset(
    "about annoys any best better buy complain complaints dislike good hate love opinion opinions"
    " owners people recommend regret reviews say saying says think thinks users worth".split()
)
# a word of a name has a capital or a figure
_NAMING = regex.compile(r"[\p{Lu}\p{N}]")
# the source that is asked, which is no part of the name: `on Reddit`, `in Amazon reviews`
_SOURCE = regex.compile(
    r"\b(?:(?:on|in|from)\s+(?:reddit|youtube|amazon)"
    r"|on\s+(?:hacker\s?news|hn|stack\s?(?:exchange|overflow)|github|lemmy|discourse"
    r"|steam(?!\s+(?:controller|deck|frame|link|machine))))\b",
    regex.I,
)


# most words of a compared name without a capital or figure
_PLAIN_WORDS = 2
# a name with a point inside: `plaud.ai`
_POINT = regex.compile(r"\p{L}\.\p{L}")
_OUTER = _EDGE + "¿¡«»‹›‚？！。，、：； "
_QUOTED_WHOLE = regex.compile(r"[\"“„«](?P<name>[^\"“”„«»]+)[\"”“»]")
_BARE = regex.compile(r"\p{Lu}|^\S$")
_SPACED = ("de", "en", "es", "fr", "pt")
_SCRIPTS = {
    "ja": regex.compile(r"[\p{Hiragana}\p{Katakana}]"),
    "zh": regex.compile(r"\p{Han}"),
}
_SPLIT = regex.compile(r"[^\p{L}\p{M}\p{N}'-]+")
_PAUSE = regex.compile(r"[,:;]\s")
# `l'autonomie`, `d'une`, `qu'on`
_ELISION = regex.compile(r"(?i)(?<![\p{L}'])([ldjnsmtc]'|qu')(?=\p{L})(?!est-ce)")
KINDS = frozenset(
    "app band bike board book browser camera car company console device display drone earbuds"
    " editor gadget game headphones headset keyboard lamp laptop light machine monitor mouse mug"
    " pad pen phone player printer recorder ring robot router scooter service shoe site software"
    " speaker tablet tool tracker vacuum watch website".split()
)
"""Words that say what kind of thing a product is."""
# `which do people like`, but not `is it like new`
_LIKED = regex.compile(r"\b(?:do|does|did|they|people|users|owners|everyone) (?:\w+ )?like\b")
# `A vs B`, in the languages that are read
_VERSUS = regex.compile(
    r"(?i)(?<!\s)\s++(?:vs\.?|versus|(?:verglichen|im vergleich) (?:mit|zu)|comparad[oa] (?:con|com|a)"
    r"|comparée? (?:à|avec)|compared (?:to|with)|against)\s++|(?<=\S)(?:对比|對比)(?=\S)"
    # with no blank only beside a script without blanks: `小米VS华为`, but not `DevSecOps`
    r"|(?<=[\p{Han}\p{Hiragana}\p{Katakana}])VS(?=\S)|(?<=\S)VS(?=[\p{Han}\p{Hiragana}\p{Katakana}])"
)
_DIFFERENCE = regex.compile(
    r"(?i)(?:unterschied\w* zwischen|diferen(?:cia|ça)s? entre|différences? entre)\s(?P<left>.+?)"
    r"\s(?:und|y|e|et)\s(?P<right>.+)"
)
# `is A better than B`
_THAN = {
    language: regex.compile(rf"(?i)^\W*+(?:{begin})?(?P<left>.+?)\s{better}\s{than}\s(?P<right>.+)")
    for language, begin, better, than in (
        ("de", r"(?:ist|sind)\s", r"(?:besser|schlechter)", "als"),
        ("en", r"(?:is|are)\s", r"(?:better|worse)", "than"),
        ("fr", r"est-ce que\s", r"(?:est(?:-il|-elle)?\s)?(?:meilleure?|mieux|pire)", "que"),
        ("pt", r"(?:será que)\s", r"(?:é\s)?(?:melhor|pior)", r"(?:do\s)?que"),
    )
} | {
    "es": regex.compile(
        r"(?i)^\W*+es\s(?:mejor|peor)\s(?P<left>.+?)\sque\s(?P<right>.+)"
        r"|^\W*+(?P<left>.+?)\s(?:es\s)?(?:mejor|peor)\sque\s(?P<right>.+)"
    )
}
# what a product is wanted for: `Framework laptop or ThinkPad for Linux`
_PURPOSE = {"de": ("für",), "en": ("for",), "es": ("para",), "fr": ("pour",), "pt": ("para",)}
QuestionKind = Literal["product", "comparison", "greeting"]
Side = Literal["", "complaints", "praise"]


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """What a question asks, by its words alone."""

    products: tuple[str, ...]
    """Product names as written: several in a comparison, none in a greeting."""
    aspect: str
    """Aspect in the question's words, such as `battery`; empty when the question names none."""
    kind: QuestionKind
    side: Side
    """The one side that is asked for."""
    language: str
    """ISO 639-1 code; `en` where no word tells."""
    subject: tuple[str, ...] = ()
    """The words that are not question words, in order; empty when the text is a name and no question."""
    content: tuple[str, ...] = ()
    """`subject` and the words that ask for one side (`annoys`); used to search by."""


@lru_cache(maxsize=1_000)
def question_parts(text: str) -> QuestionParts:
    """A question taken apart: products, aspect, kind, side and language.

    Read are English, German, Spanish, French, Portuguese, Japanese and Chinese. A text in quotation
    marks is one name, whatever it holds: `"Batman vs Superman"`.
    """
    question = clean_query(text)
    if len(question) > MAX_QUESTION_LENGTH:
        return QuestionParts((question,), "", "product", "", "en")
    if question and is_small_talk(question, alone=MAX_QUESTION_LENGTH):
        return QuestionParts((), "", "greeting", "", _language(question))
    if quoted := _QUOTED_WHOLE.fullmatch(question):
        return QuestionParts((quoted["name"].strip(),), "", "product", "", _language(question))
    language = _language(question)
    plain = one_line(_SOURCE.sub(" ", question))
    if language in _SCRIPTS:
        return _unspaced_parts(plain, language)
    tokens, lists = _tokens(plain, language), _asking_words(language)
    side = _side(tokens, language)
    sides, tail = _compared_sides(plain, language)
    if len(sides) > 1:
        return QuestionParts(sides, tail, "comparison", side, language, content=(*sides, *tail.split()))
    if not _asks(plain, tokens, side, language):
        return QuestionParts((plain,) if plain else (), "", "product", side, language)
    product, aspect = _product_and_aspect(tokens, language)
    subject = tuple(token.word for token in tokens if token.named)
    one_sided = lists["complaints"] | lists["praise"]
    content = tuple(token.word for token in tokens if token.named or token.plain in one_sided)
    return QuestionParts((product,) if product else (), aspect, "product", side, language, subject, content)


class _Token(NamedTuple):
    word: str
    """The word as written, without surrounding punctuation."""
    plain: str
    named: bool
    """Whether the word may be part of the name of a product or aspect."""
    links_aspect: bool = False
    """Whether it is a word such as `of`, with the aspect before it and the product after it."""
    owner: bool = False
    """Whether it is a possessive, such as `Oura's` in `Oura's battery`."""
    proper: bool = False
    """Whether it has the form of a name: a capital, a digit, or a full stop inside."""


class _Chunk(NamedTuple):
    tokens: tuple[_Token, ...]
    preposition: str
    """Preposition before it without articles, such as `of` in `battery of the Oura`; empty without one."""

    @property
    def text(self) -> str:
        return " ".join(token.word for token in self.tokens)

    @property
    def proper(self) -> int:
        """Words in it that have the form of a name."""
        return sum(token.proper for token in self.tokens)


@cache
def _asking_words(language: str) -> Mapping[str, frozenset[str]]:
    """The lists of `question_words.toml` for a language."""
    return {name: frozenset(words.split()) for name, words in _lists()[language].items()}


@cache
def _all_asking_words(language: str) -> frozenset[str]:
    return frozenset().union(*_asking_words(language).values())


@cache
def _either(language: str) -> regex.Pattern[str]:
    """Pattern for the words between two alternatives, such as ` or `."""
    return regex.compile(rf"(?i)(?<!\s)\s++(?:{'|'.join(_asking_words(language)['either'])})\s++")


@cache
def _phrases(language: str) -> Mapping[str, regex.Pattern[str]]:
    """The patterns of `question_words.toml` for a script without blanks."""
    return {name: regex.compile(lines.replace("\n", "")) for name, lines in _lists()[language].items()}


@cache
def _lists() -> Mapping[str, Mapping[str, str]]:
    return loads(files("api.pipeline.question").joinpath("question_words.toml").read_text("utf-8"))


def _language(question: str) -> str:
    """The language of a question by its script, else by its small words; English when none tells."""
    for language, script in _SCRIPTS.items():
        if script.search(question):
            return language
    spoken = {word.casefold() for word in _SPLIT.split(question.replace("’", "'")) if word}

    def known(language: str) -> int:
        asking = spoken & _all_asking_words(language)
        return 2 * len(asking) + len((spoken & stop_words(language)) - asking)

    # a mark that only these languages write
    marked = {"es": "¿"}
    return max(_SPACED, key=lambda code: (known(code) + 3 * (marked.get(code, "\0") in question), code == "en"))


def _tokens(question: str, language: str) -> list[_Token]:
    lists, meaningless = _asking_words(language), stop_words(language)
    question = question.replace("’", "'")
    if language == "fr":
        question = _ELISION.sub(r"\1 ", question)
    raw = [word for word in question.split() if word.strip(_EDGE)]
    titled = all(word[:1].isupper() for word in raw if word[:1].isalpha())
    tokens: list[_Token] = []
    for number, written in enumerate(raw):
        bare = written.strip(_OUTER)
        word = bare.removesuffix("'s")
        plain = word.casefold()
        asks = any(plain in lists[name] for name in ("asking", "complaints", "praise", "of")) or (
            number == 0 and plain in lists["openers"]
        )
        # a capital inside a sentence marks a name, also on a stop word: `the Room app`; not in German
        inside = number > 0 and not titled and word[:1].isupper() and (language != "de" or word.isupper())
        small = plain in meaningless and not inside and not any(map(str.isdigit, word))
        if plain in {"amazon", "reddit", "youtube"}:
            asks = small = False
        proper = bool(_NAMING.search(word) or _POINT.search(word))
        tokens.append(
            _Token(word, plain, not (asks or small) and bool(word), plain in lists["of"], word != bare, proper)
        )
    return tokens


def _asks(question: str, tokens: Sequence[_Token], side: Side, language: str) -> bool:
    """Whether a text is a question, and no name that begins like one (`How I Met Your Mother`)."""
    if not tokens:
        return False
    lists, marked = _asking_words(language), question.rstrip(" \"'”").endswith(("?", "？"))
    first = tokens[0].plain.replace("'", "")
    opened = first in {opener.replace("'", "") for opener in lists["openers"]}
    if language == "en":
        opinions = _OPINIONS.intersection(token.plain for token in tokens)
        return (opened and (marked or bool(opinions))) or _PART.match(question) is not None
    return marked or (opened and (bool(side) or any(token.plain in lists["asking"] for token in tokens)))


def _side(tokens: Iterable[_Token], language: str) -> Side:
    """The side that a question asks for, where it is one."""
    lists = _asking_words(language)
    plain = {token.plain for token in tokens}
    sides = [side for side in ("complaints", "praise") if plain & lists[side]]
    if language == "en" and not sides and _LIKED.search(" ".join(token.plain for token in tokens)):
        return "praise"
    return cast(Side, sides[0]) if len(sides) == 1 else ""


def _chunks(tokens: Sequence[_Token]) -> list[_Chunk]:
    """The runs of words that name something, with the possessive marker right before a run that is owned."""
    chunks: list[_Chunk] = []
    run: list[_Token] = []
    owner = owned_run = ""
    for token in (*tokens, _Token("", "", False)):
        if token.named:
            if not run:
                owned_run = owner
            run.append(token)
            continue
        if run:
            chunks.append(_Chunk(tuple(run), owned_run))
            run, owner = [], ""
        if token.plain not in _asking_words("shared")["articles"] or token.links_aspect:
            owner = token.plain if token.links_aspect else ""
    return chunks


def _product_and_aspect(tokens: Sequence[_Token], language: str) -> tuple[str, str]:
    """The product among the words that name something, and what is asked about it."""
    chunks = _chunks(tokens)
    if not chunks:
        return "", ""
    if language == "de" and len(chunks) > 1 and chunks[0].tokens == (tokens[0],):
        chunks = chunks[1:]  # the verb that a question begins with has a capital: `Zahlt`
    owners = [number for number, chunk in enumerate(chunks) if chunk.preposition and number]
    proper_owners = [number for number in owners if chunks[number].proper]
    most = max(chunk.proper for chunk in chunks)
    if proper_owners:
        at = proper_owners[-1]
    elif most:
        at = next(number for number, chunk in enumerate(chunks) if chunk.proper == most)
    else:
        owners = [number for number in owners if chunks[number].preposition not in _asking_words("shared")["where"]]
        verbs = tokens[0].plain in _asking_words("shared")["yes_no"]
        at = owners[0] if owners else 0 if verbs else len(chunks) - 1
        if refers_back(" ".join(token.word for token in tokens)):
            return "", " ".join(chunk.text for chunk in chunks)
    name, rest = _name_in(chunks[at], language)
    others = [chunk.text for number, chunk in enumerate(chunks) if number != at]
    if at and chunks[at].preposition:
        others = [chunks[at - 1].text]
    return name, " ".join(filter(None, (*rest[:1], *others, *rest[1:])))


def _name_in(chunk: _Chunk, language: str) -> tuple[str, tuple[str, str]]:
    """The name in a run of words, and the words of it that are before and behind the name."""
    words = [token.word for token in chunk.tokens]
    if not chunk.proper:
        end = len(words)
        while end > 1 and words[end - 1].casefold() in _asking_words("shared")["topics"]:
            end -= 1
        return " ".join(words[:end]), ("", " ".join(words[end:]))
    start = next((n for n, word in enumerate(words) if word[0].isupper()), 0) if language == "en" else 0
    end = 1 + max(number for number, token in enumerate(chunk.tokens) if token.proper)
    while end < len(words) and stem(words[end].casefold()) in KINDS and not chunk.tokens[end - 1].owner:
        end += 1
    return " ".join(words[start:end]), (" ".join(words[:start]), " ".join(words[end:]))


def _compared_sides(question: str, language: str) -> tuple[tuple[str, ...], str]:
    """The compared products and what is asked about them; none without two."""
    raw, tail = _raw_sides(question, language)
    sides = [_product_and_aspect(_tokens(side, language), language) for side in raw]
    # a name of one letter, or of words that ask: `X`, `Best Buy`
    spelled = [one_line(side).strip(_OUTER) for side in raw]
    names = [name or (text if _BARE.search(text) else "") for (name, _), text in zip(sides, spelled, strict=True)]
    if len(names) < 2 and language == "en" and not _THAN[language].search(question):
        names = list(compared_names(question))
    if len(names) < 2 or not all(map(_may_be_product, names)):
        return (), ""
    asked_about = [aspect for _, aspect in sides]
    asked_about += reversed(_product_and_aspect(_tokens(tail, language), language)) if tail else ()
    distinct = {canonical(name): name for name in reversed(names)}
    return tuple(reversed(distinct.values())), " ".join(dict.fromkeys(filter(None, asked_about)))


def _raw_sides(question: str, language: str) -> tuple[list[str], str]:
    """The texts on both sides of what compares, and what follows them."""
    if match := _THAN[language].search(question):
        sides = [match["left"], match["right"]]
        return (sides if all(_is_name(side, " ".join(sides), language) for side in sides) else []), ""
    if match := _DIFFERENCE.search(question):
        return [match["left"], match["right"]], ""
    sides = _VERSUS.split(question)
    if len(sides) > 1:
        return _without_purpose(sides, "", language)
    head, tail = [*_PAUSE.split(question, maxsplit=1), ""][:2]
    if tail and not any(token.named for token in _tokens(head, language)):
        head, tail = tail, head  # `Which is better, A or B?`
    parts = _either(language).split(head)
    parts, tail = _without_purpose(parts, tail, language)
    if len(parts) < 2 or not _chooses(question, parts, tail, language):
        return [], ""
    return parts, tail


def _without_purpose(parts: list[str], tail: str, language: str) -> tuple[list[str], str]:
    """The sides, and what is asked about them: `for sleep` behind the last one goes to the tail."""
    last = parts[-1]
    for word in _PURPOSE.get(language, ()):
        last, purpose, rest = last.partition(f" {word} ")
        tail = f"{rest} {tail}".strip() if purpose else tail
    return [*parts[:-1], last], tail


def _chooses(question: str, parts: Sequence[str], tail: str, language: str) -> bool:
    """Whether `A or B` asks to choose a product, and is no question about one (`warm or cold?`)."""
    if not (tail or question.rstrip().endswith("?")):
        return False
    lists = _asking_words(language)
    first = parts[0].split()[0].strip(_OUTER).casefold() if parts[0].split() else ""
    better = any(token.plain in _asking_words("shared")["better"] for token in _tokens(question, language))
    chunks = [_chunks(_tokens(part, language)) for part in parts]
    if any(len(pieces) != 1 for pieces in chunks):
        return False
    if better or first in lists["openers"] | lists["asking"]:
        return better
    return all(chunk.proper for pieces in chunks for chunk in pieces)


def _may_be_product(name: str) -> bool:
    """Whether a compared side is as short as names are, which `classical guitarist pricing` is not."""
    return 0 < len(name.split()) <= _PLAIN_WORDS or _NAMING.search(name) is not None


def _is_name(side: str, sides: str, language: str) -> bool:
    """Whether one side of `better than` may be a product: by its capitals, where the `sides` have any.

    Neither side of `is my battery worse than normal?` is one, nor the second of `Plaud, is it better than nothing?`.
    """
    chunks = _chunks(_tokens(side, language))
    if chunks and chunks[0].proper:
        return True
    first = side.split()[0].strip(_OUTER).casefold() if side.split() else ""
    return sides == sides.lower() and first not in stop_words(language)


def _unspaced_parts(question: str, language: str) -> QuestionParts:
    """A question in Japanese or Chinese taken apart."""
    pattern = _phrases(language)
    if match := pattern["comparison"].search(question):
        names = tuple(part.strip(_OUTER + " ") for part in (match["left"], match["right"]))
        if all(names) and canonical(names[0]) != canonical(names[1]):
            return QuestionParts(names, "", "comparison", "", language)
    versus = [part.strip(_OUTER + " ") for part in _VERSUS.split(question)]
    if len(set(map(canonical, versus))) > 1 and all(versus):
        return QuestionParts(tuple(dict.fromkeys(versus)), "", "comparison", "", language)
    side: Side = ""
    name: Side
    for name in ("complaints", "praise"):
        if pattern[name].search(question):
            side = name if not side else ""
    rest, before = question.strip(_OUTER + " "), ""
    while rest != before:
        before = rest
        rest = pattern["begin"].sub("", pattern["end"].sub("", rest)).strip(_OUTER + " ")
    if rest == question.strip(_OUTER + " "):
        return QuestionParts((question,), "", "product", side, language)
    product, aspect = rest, ""
    if match := pattern["part"].fullmatch(rest):
        product, aspect = match["product"].strip(), match["aspect"].strip()
        if pattern["empty"].fullmatch(aspect):
            aspect = ""
    if not product:
        return QuestionParts((question,), "", "product", side, language)
    subject = tuple(filter(None, (product, aspect)))
    return QuestionParts((product,), aspect, "product", side, language, subject, subject)


def product_in(question: str, topics: Container[str] = frozenset()) -> str:
    """The product's name as written, without words of `topics` beside other words; empty when there is none."""
    parts = question_parts(question)
    text = parts.products[0] if parts.subject and len(parts.products) == 1 else question
    words = [word.strip(_EDGE).removesuffix("'s").removesuffix("’s") for word in text.split()]
    names = [word for word in words if word and word.casefold() not in ASKING_WORDS]
    names = [word for word in names if word.casefold() not in topics] or names
    return " ".join(names) if 0 < len(names) <= _MAX_NAME_WORDS else ""


def without_web_ending(name: str) -> str:
    """The name without its web ending: `plaud` of `plaud.ai`."""
    return _ENDING.sub("", name).strip()


def search_words(question: str) -> str:
    """The words to search for: those of a question that do not ask, else the text.

    `is the battery of the Oura ring good?` is `battery Oura ring`; `How I Met Your Mother` stays.
    """
    return " ".join(question_parts(question).subject) or question


def judged_words(question: str) -> str:
    """The words that a post must be about: the product among `search_words`."""
    if question.isascii() and question.isalnum():  # one word is a name; a stream's index asks for 100,000
        return question
    parts = question_parts(question)
    if not parts.subject:
        return question
    return " ".join(parts.subject if parts.kind == "comparison" else parts.products) or question


def new_queries(queries: Iterable[str], earlier: Iterable[str]) -> list[str]:
    """The queries without other spellings of each other and of the earlier ones, in order."""
    known = {canonical(query) for query in earlier} | {""}
    new: dict[str, str] = {}
    for query in queries:
        form = canonical(query)
        if form not in known:
            new.setdefault(form, query)
    return list(new.values())
