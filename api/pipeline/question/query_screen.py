"""The screening of queries: small talk is refused with guidance, search operators are removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import regex

from api.choices import MAX_QUESTION_LENGTH
from api.core.text import clean_query, cut, fold, one_line
from api.core.words import LANGUAGES, stop_words, words

STOP_WORDS_ALONE = 3
"""Number of stop words that, without other words, count as small talk; fewer may be a name (X, The Who)."""

EXAMPLE = "for example `standing desk wobble` or `plaud.ai`"
_HELP = {
    "empty": f"Nothing was asked. Name a product, a brand or a topic, {EXAMPLE}.",
    "noise": f"It holds no word to search for. Name a product, a brand or a topic, {EXAMPLE}.",
    "small_talk": f"Hello! Say which product, brand or topic you want to hear about, {EXAMPLE}.",
    "operators": (
        "It holds search operators only (such as `site:`, `author:` or `-word`), which are not "
        f"used here. Write the name in plain words, {EXAMPLE}."
    ),
    "long": "It is too long: ask in at most {longest} characters.",
}


@dataclass(frozen=True, slots=True)
class ScreenedQuery:
    """The result of screening; `guidance` is empty when the query may be asked."""

    ok: bool
    query: str
    """The query on one line, without control characters."""
    guidance: str = ""


def screen_query(
    text: str, *, longest: int = MAX_QUESTION_LENGTH, stop_words_alone: int = STOP_WORDS_ALONE
) -> ScreenedQuery:
    """Refuse with guidance what cannot be searched for; names pass, however short."""
    query, fault = clean_query(text), ""
    plain = without_operators(query, "amazon") if len(query) <= longest else ""
    only_operators = plain != query and {"and", "or", "not"}.issuperset(plain.split())
    if not query:
        fault = "empty"
    elif len(query) > longest:
        fault = "long"
    elif not _LETTER.search(query) or _ONE_CHARACTER.fullmatch(query):
        fault = "noise"
    elif only_operators or not _LETTER.search(plain):
        fault = "operators"
    elif is_small_talk(plain, alone=stop_words_alone):
        fault = "small_talk"
    return ScreenedQuery(not fault, query, _HELP[fault].format(longest=longest) if fault else "")


# something to search for: a letter or digit of any script
_LETTER = regex.compile(r"[\p{L}\p{N}]")
# one character at least five times, with or without blanks: `aaaaa`, `. . . . .`
_ONE_CHARACTER = regex.compile(r"(\X)(?:\s*\1){4,}")

OPERATOR_FIELDS = (
    "site author subreddit self selftext nsfw over18 flair flair_text title url timestamp created "
    "intitle allintitle inurl allinurl intext allintext filetype related cache before after "
    "channel description hashtag duration"
).split()
"""Fields of operators (`site:`) that Reddit, YouTube or a web search obeys."""
SOURCE_OPERATOR_FIELDS: Mapping[str, tuple[str, ...]] = {
    "stackexchange": tuple(
        "user score answers views is isaccepted hasaccepted inquestion closed duplicate wiki "
        "migrated locked lastactive code body collective hascode hasnotice".split()
    ),
    "github": tuple(
        "repo org user is type state label milestone assignee mentions commenter involves team in "
        "language project no head base sha updated closed merged draft review reviewed-by archived "
        "linked reason sort topic comments reactions interactions status".split()
    ),
    "discourse": tuple(
        "order category categories tag tags user users group groups badge status in with topic "
        "posts_count min_posts max_posts min_post_count post_count min_views max_views".split()
    ),
}
"""Further fields by source; for the others these may be words of a name."""

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»「」『』", '"') | dict.fromkeys("‘’‛", "'"))


def one_name(text: str) -> str:
    """The text in quotation marks, so that it is asked as one name, whatever it holds."""
    name = clean_query(text).translate(_QUOTES).replace('"', "")
    return f'"{cut(name, MAX_QUESTION_LENGTH - 2)}"'


def _without_fields(names: Iterable[str]) -> tuple[tuple[regex.Pattern[str], str], ...]:
    field = "|".join(sorted(names, key=len, reverse=True))
    return (
        # a known field with its value: `-site:reddit.com`, `title:"Dune"`, `self:(a b)`
        (
            regex.compile(rf'(?i)(?<!\w)[-+!]*(?:{field}):(?:"[^"]*"?|\([^()]*\)?|\[[^][]*\]?|[^\s"()[\]]+)'),
            " ",
        ),
        # a known field before a blank: the colon of `title: Dune`
        (regex.compile(rf"(?i)(?<!\w)({field}):"), r"\1 "),
    )


_SHARED = (
    # the scheme of an address: `https://www.`
    (regex.compile(r"(?i)https?://(?:www\.)?"), " "),
    *_without_fields(OPERATOR_FIELDS),
    *(
        (regex.compile(pattern), by)
        for pattern, by in (
            # any field with a comparison: `score:>=10`
            (r'\b\w+:[<>=]+[^\s"]*', " "),
            # the minus of a number, which stays: `-20`
            (r'(?<![^\s("])-+(?=\d)', ""),
            # what must not be there: `-used`, `-"for parts"`
            (r'(?<![^\s("])-+(?:"[^"]*"?|[^\s"]+)', " "),
            # the sign of what must be there: `+case`, `!case`
            (r'(?<![^\s("])[+!]+(?=\S)', ""),
            # a dash between blanks: `mug - red`
            (r"(?<!\S)-+(?!\S)", " "),
            # other words for OR and AND: `a|b`, `a && b`
            (r"\|+|&&+", " "),
        )
    ),
)
# `mug AND lid`, but not `R&D`, `AND-gate` or the `NOT` of `NOT.com`
_BOOLEAN = regex.compile(r"(?<![\w&.'-])(?:AND|OR|NOT)(?![\w&'-]|\.\w)")
# punctuation between blanks: `mug / lid`; quotes stay
_LONE = (r"(?<!\S)[!#-/:-@\[-`{-~]+(?!\S)", " ")
_EXTRA = {
    "reddit": tuple(
        (regex.compile(pattern), by)
        for pattern, by in (
            # nearness and weight: `mug~2`, `mug^1.5`
            (r"[~^][\d.]*", " "),
            # groups, wildcards, ranges: `(mug OR cup)`, `mu?`, `[a TO b]`
            (r"[][(){}\\*?:!<>]", " "),
            # a pattern: `/mugs?/`, while `24/7` stays
            (r"(?<!\S)/+|/+(?!\S)", " "),
            _LONE,
        )
    ),
    "amazon": tuple(
        (regex.compile(pattern), by)
        # whatever is no part of a word; the last two join letters in Persian and Hindi
        for pattern, by in ((r"[^\p{L}\p{M}\p{N}\s.+&#'\-\u200c\u200d]", " "), _LONE)
    ),
    "stackexchange": (
        *_without_fields(SOURCE_OPERATOR_FIELDS["stackexchange"]),
        # tags and wildcards: `[android]`, `app*`
        (regex.compile(r"[][]"), " "),
        (regex.compile(r"\*+"), ""),
    ),
    "github": (
        *_without_fields(SOURCE_OPERATOR_FIELDS["github"]),
        # groups, and a person: `(mug OR cup)`, `@potter`
        (regex.compile(r"[()]|(?<![^\s\"])@+(?=\w)"), " "),
    ),
    "discourse": (
        *_without_fields(SOURCE_OPERATOR_FIELDS["discourse"]),
        # a person, a category or tag: `@potter`, `#mugs`, while `C#` stays
        (regex.compile(r"(?<![^\s\"])[@#]+(?=\S)"), " "),
        # short for `order:latest`, `in:title` and more
        (regex.compile(r"(?<!\S)[ltr](?!\S)"), " "),
    ),
    # a quote is an ordinary character there, and `@potter@lemmy.world` an address
    "lemmy": ((regex.compile(r"\"|(?<!\S)@+(?=\S)"), " "),),
}
# `"standing desk"`
_PHRASE = regex.compile(r'"([^"]*)"')


def without_operators(query: str, source: str) -> str:
    """The query as plain words for one source; empty when it holds only operators.

    Names such as `C++`, `R&D`, `Spider-Man`, `plaud.ai` and "quoted phrases" stay; AND, OR, NOT
    become lower case, quotes straight and paired. Doing it twice changes nothing.
    """
    text, before = clean_query(query).translate(_QUOTES), None
    while text != before:
        before = text
        for pattern, by in (*_SHARED, *_EXTRA.get(source, ())):
            text = pattern.sub(by, text)
        text = _BOOLEAN.sub(lambda word: word.group().lower(), text)
        if text.count('"') % 2:
            head, _, tail = text.rpartition('"')
            text = f"{head} {tail}"
        text = one_line(
            _PHRASE.sub(
                lambda phrase: f'"{one_line(phrase[1])}"' if _LETTER.search(phrase[1]) else " ",
                text,
            )
        )
    return text


_SPOKEN = """
hey|hi|hello|hiya|howdy|yo|greetings|good morning|good afternoon|good evening|good night
morning all|hey there|hi there|hello there|hello world|what's up|whats up|wassup|sup
how's it going|how is it going|thanks a lot|thanks|thank you|thx|ty|cheers|great|nice
cool|awesome|perfect|ok|okay|yes|no|yep|nope|lol|haha|please|bye|goodbye|see you|test
testing|test message|just testing|message|help|help me|who are you|nothing much|hola
buenos días|buenas tardes|buenas noches|buenas|qué tal|gracias|muchas gracias|adiós
prueba|bonjour|bonsoir|salut|coucou|ça va|merci|merci beaucoup|au revoir|d'accord
essai|hallo|moin|servus|guten tag|guten morgen|guten abend|wie geht's|wie gehts
wie geht es dir|wie geht es ihnen|danke|tschüss|ciao|buongiorno|buonasera
come stai|come va|grazie|prova|olá|oi|bom dia|boa tarde|boa noite|tudo bem|obrigado
obrigada|teste|hoi|goedemorgen|goedemiddag|dag|hoe gaat het|bedankt|hej|hejsan
god morgon|hei|kiitos|takk|tak|cześć|dzień dobry|dziękuję|ahoj|dobrý den|děkuji|szia
köszönöm|bună|mulțumesc|γεια|γεια σου|ευχαριστώ|привет|здравствуйте|добрый день
доброе утро|как дела|спасибо|тест|привіт|дякую|как ты|merhaba|selam|günaydın|nasılsın
teşekkürler|teşekkür ederim|deneme|مرحبا|اهلا|أهلا|السلام عليكم|سلام|صباح الخير|كيف حالك
كيف الحال|شكرا|خوبی|ممنون|تست|درود|שלום|תודה|מה שלומך|नमस्ते|धन्यवाद|कैसे हो|आप कैसे हैं
halo|apa kabar|terima kasih|xin chào|chào|cảm ơn|kumusta|salamat|asante
"""
_UNSPACED = """
你好吗|你好|您好|大家好|嗨|哈喽|早上好|晚上好|谢谢|謝謝|多谢|再见
这是一个测试|这是测试|测试|測試|在吗|こんにちは|こんばんは|おはようございます
おはよう|ありがとうございます|ありがとう|元気ですか|お元気ですか|テスト|もしもし
안녕하세요|안녕|감사합니다|고마워요|고마워|테스트|잘 지내세요
สวัสดีครับ|สวัสดีค่ะ|สวัสดี|ขอบคุณ|ทดสอบ
"""


def _phrases(text: str) -> list[str]:
    """Each as it is and folded, the longest first: `hello there` must win over `hello`."""
    written = text.strip().replace("\n", "|").split("|")
    forms = {form for phrase in written for form in (phrase, fold(phrase))}
    return [regex.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form))]


# a phrase as whole words, not the `hi` of `hi-fi` or `hi.com`; in scripts without blanks anywhere
_GREETING = regex.compile(
    rf"(?<![\w.'-])(?:{'|'.join(_phrases(_SPOKEN))})(?![\w'-]|\.\w)|{'|'.join(_phrases(_UNSPACED))}"
)
# `hiiii`, `heyyy`: a letter three times or more
_LETTER_RUN = regex.compile(r"(\p{L})\1{2,}")


def is_small_talk(text: str, *, alone: int = STOP_WORDS_ALONE) -> bool:
    """Whether the text only greets, thanks or tests: stop words of one language and greetings.

    Without a greeting it has at least `alone` words, and no capital like that of a name: inside a
    sentence, or in a first word that is all capitals (`X`), unless the whole text is.
    """
    plain = text.replace("\u2019", "'")
    rest, greetings = _GREETING.subn(" ", " ".join(words(_LETTER_RUN.sub(r"\1", plain))))
    left = words(rest)
    if not greetings:
        if len(left) < alone:
            return False
        first, *others = plain.split()
        shouted = plain.isupper() and others and len(plain) > len("X vs Y")
        inside = any(word[0].isupper() and word != "I" and word[:2] != "I'" for word in others)
        if not shouted and (inside or (first.isupper() and first not in {"I", "A"})):
            return False
    return any(stop_words(language).issuperset(left) for language in LANGUAGES)
