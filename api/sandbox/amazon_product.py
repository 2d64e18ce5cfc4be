"""Amazon's product page: title, price, bullets, histogram, reviews in new and old markup."""

from __future__ import annotations

from api.sandbox.corpus import Post, Remark
from api.sandbox.names import shopper
from api.sandbox.pages import Html, joined, render, when
from api.sandbox.world import World

_HOME = "the United States"
_LOCAL, _FOREIGN = 8, 5
_BARS = ("five_star", "four_star", "three_star", "two_star", "one_star")


def shares(stars: float) -> list[int]:
    """Percent of five, four, three, two and one stars, higher for better products."""
    high = max(0.0, min(1.0, (stars - 1) / 4))
    five, one = round(100 * high**1.5), round(100 * (1 - high) ** 1.5)
    rest = max(0, 100 - five - one)
    four, two = round(rest * high * 0.7), round(rest * (1 - high) * 0.6)
    return [five, four, rest - four - two, two, 100 - five - rest]


def dated(world: World, remark: Remark) -> str:
    """When and where it was reviewed, as the site says it."""
    when_ = world.moment(remark.age_days)
    return f"Reviewed in {remark.country} on {when_:%B} {when_.day}, {when_.year}"


def page(world: World, post: Post) -> Html:
    """The page of one product."""
    home = [remark for remark in post.comments if remark.country == _HOME][:_LOCAL]
    abroad = [remark for remark in post.comments if remark.country != _HOME][:_FOREIGN]
    lines = [line for line in post.body.split("\n") if line.strip()]
    rated, counted = post.stars is not None, post.ratings is not None
    priced = render("product_price", price=post.price)
    return render(
        "product",
        title=post.title,
        brand=post.place,
        asin=post.id,
        rating=when(rated, render("product_rating", stars=post.stars)),
        count=when(counted, render("product_count", count=f"{post.ratings or 0:,}")),
        price=priced if post.price else render("product_no_price"),
        bullets=joined(render("product_bullet", line=line) for line in lines),
        histogram=_histogram(post),
        home=joined(_new(world, remark) for remark in home),
        abroad=joined(_old(world, remark) for remark in abroad),
    )


def _histogram(post: Post) -> Html:
    if post.stars is None:
        return Html("")
    bars = zip(_BARS, shares(post.stars), strict=True)
    return joined(
        render("product_bar", share=share, stars=5 - at, bar=name, asin=post.id)
        for at, (name, share) in enumerate(bars)
    )


def _helpful(remark: Remark) -> Html:
    said = "One person" if remark.votes == 1 else f"{remark.votes:,} people"
    return when(remark.votes, render("review_helpful", said=said))


def _new(world: World, remark: Remark) -> Html:
    """A review in today's markup; its text begins with words that are not the reviewer's."""
    lines = remark.body.split("\n")
    return render(
        "review_new",
        id=remark.id,
        author=shopper("amazon", remark.id),
        stars=remark.stars,
        title=remark.title,
        dated=dated(world, remark),
        badge=when(remark.verified, render("review_badge")),
        paragraphs=joined(render("review_paragraph", line=line) for line in lines),
        helpful=_helpful(remark),
    )


def _old(world: World, remark: Remark) -> Html:
    """A review in the older markup, which foreign reviews still have."""
    return render(
        "review_old",
        id=remark.id,
        author=shopper("amazon", remark.id),
        stars=remark.stars,
        title=remark.title,
        dated=dated(world, remark),
        badge=when(remark.verified, render("review_badge_old")),
        body=remark.body,
        helpful=_helpful(remark),
    )
