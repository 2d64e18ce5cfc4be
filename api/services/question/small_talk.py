"""Telling small talk from a name: greetings in many languages plus a maintained stop word list."""

from __future__ import annotations

from functools import cache

import regex
import stopwordsiso

from api.services.text import fold

STOP_WORDS_ALONE = 3
"""A text of stop words alone is small talk from this many; fewer may be a name (X, The Who)."""

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
_NAMES = frozenset(
    "ai bill computer fire microsoft mill mug netscape nothing novel open ring shell tv".split()
)
"""In the English list, yet what people ask about."""


def _phrases(text: str) -> list[str]:
    spoken = {form for one in regex.split(r"[|\n]", text.strip()) for form in (one, fold(one))}
    return [regex.escape(one) for one in sorted(spoken, key=lambda one: (-len(one), one))]


_GREETING = regex.compile(
    rf"(?<![\w.'-])(?:{'|'.join(_phrases(_SPOKEN))})(?![\w'-]|\.\w)|{'|'.join(_phrases(_UNSPACED))}"
)
_LETTER_RUN = regex.compile(r"(\p{L})\1{2,}")
_OUTER = regex.compile(r"^[^\w]+|[^\w]+$")


@cache
def stop_words(language: str) -> frozenset[str]:
    """The words of a language that carry no meaning; what people ask about is none of them."""
    return frozenset(stopwordsiso.stopwords(language)) - _NAMES


def words(text: str) -> tuple[str, ...]:
    """Lower-case words without outer punctuation; `plaud.ai` and `what's` stay whole."""
    parts = (_OUTER.sub("", part) for part in regex.split(r"[\s,;!?、。…]+", text.casefold()))
    return tuple(part for part in parts if part)


def content_words(text: str) -> tuple[str, ...]:
    """The words that carry meaning: no English stop words, in order, each once."""
    return tuple(dict.fromkeys(word for word in words(text) if word not in stop_words("en")))


def languages_of(text: str) -> frozenset[str]:
    """The languages that most words without meaning belong to; all, when there are none."""
    parts = set(words(text))
    counts = {language: len(parts & stop_words(language)) for language in stopwordsiso.langs()}
    most = max(counts.values())
    return frozenset(language for language, count in counts.items() if count == most)


def is_small_talk(text: str, *, alone: int = STOP_WORDS_ALONE) -> bool:
    """Whether the text greets, thanks or tests and names nothing that could be searched.

    Greetings go first; what is left must be stop words of one language. Without any greeting,
    `alone` stop words or more are small talk, unless one is capitalised like a name.
    """
    plain = text.replace("\u2019", "'")
    rest, greetings = _GREETING.subn(" ", " ".join(words(_LETTER_RUN.sub(r"\1", plain))))
    left = words(rest)
    if not greetings and (len(left) < alone or _names_something(plain)):
        return False
    return any(stop_words(language).issuperset(left) for language in sorted(stopwordsiso.langs()))


def _names_something(text: str) -> bool:
    """A capital inside the sentence, or a first word all in capitals (`X`), but no shouting."""
    first, *others = text.split()
    if text.isupper() and others and len(text) > len("X vs Y"):
        return False
    inside = any(word[0].isupper() and word != "I" and word[:2] != "I'" for word in others)
    return inside or (first.isupper() and first not in {"I", "A"})
