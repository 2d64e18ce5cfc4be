"""Amazon: its own pages and two providers' JSON, over the same products.

Two paid providers of Amazon data: OpenWeb Ninja and omkar.cloud, in the fields they send.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.sandbox.amazon_markup import (
    TILES,
    dated,
    product_page,
    render,
    search_page,
    shares,
    shopper,
    short_count,
)
from api.sandbox.corpus import DIGITS, HEX, Post, Remark, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import RequestGateway, SandboxCall, World


def _link(post: Post) -> str:
    return f"https://www.amazon.com/dp/{post.id}"


def _image(post: Post) -> str:
    return f"https://m.media-amazon.com/images/I/{spelled(DIGITS, 10, post.id)}._AC_UY654_.jpg"


def _amount(post: Post) -> float | None:
    text = "".join(c for c in post.price or "" if c.isdigit() or c == ".")
    return float(text) if text.strip(".") else None


def ninja(parameters: dict[str, str], data: dict[str, Any]) -> dict[str, Any]:
    """OpenWeb Ninja's envelope."""
    request = spelled(HEX, 32, *sorted(parameters.items()))
    return {"status": "OK", "request_id": request, "parameters": parameters, "data": data}


def ninja_product(post: Post) -> dict[str, Any]:
    """One search result there: ratings and prices are texts."""
    sold = f"{short_count(post.ratings or 0)}+ bought in past month"
    return {
        "asin": post.id,
        "product_title": post.title,
        "product_price": post.price,
        "product_original_price": None,
        "currency": "USD",
        "product_star_rating": None if post.stars is None else f"{post.stars}",
        "product_num_ratings": post.ratings,
        "product_url": _link(post),
        "product_photo": _image(post),
        "product_num_offers": 1,
        "product_minimum_offer_price": post.price,
        "is_best_seller": False,
        "is_amazon_choice": False,
        "is_prime": True,
        "sales_volume": sold if post.ratings else None,
        "delivery": "FREE delivery",
        "has_variations": False,
        "product_badge": "Sponsored" if post.sponsored else None,
    }


def ninja_details(post: Post) -> dict[str, Any]:
    """One product there."""
    return ninja_product(post) | {
        "about_product": [line for line in post.body.split("\n") if line.strip()],
        "product_description": None,
        "product_byline": f"Visit the {post.place} Store",
        "product_availability": "In Stock" if post.price else "Currently unavailable",
        "rating_distribution": _distribution(post),
    }


def ninja_review(world: World, post: Post, remark: Remark) -> dict[str, Any]:
    """One review there."""
    helpful = f"{remark.votes} people found this helpful"
    return {
        "review_id": remark.id,
        "review_title": remark.title,
        "review_comment": remark.body,
        "review_star_rating": str(remark.stars),
        "review_link": f"https://www.amazon.com/gp/customer-reviews/{remark.id}",
        "review_author": shopper(remark),
        "review_author_avatar": None,
        "review_images": [],
        "review_video": None,
        "review_date": dated(world, remark),
        "is_verified_purchase": remark.verified,
        "helpful_vote_statement": helpful if remark.votes else None,
        "reviewed_product_asin": post.id,
        "reviewed_product_variant": {},
        "is_vine": False,
    }


def omkar_product(post: Post) -> dict[str, Any]:
    """One search result at omkar.cloud."""
    amount = _amount(post)
    return {
        "title": post.title,
        "price": amount,
        "original_price": None,
        "rating": post.stars,
        "reviews": post.ratings,
        "asin": post.id,
        "link": _link(post),
        "image_url": _image(post),
        "currency": "USD",
        "is_best_seller": False,
        "is_amazon_choice": False,
        "is_prime": True,
        "is_sponsored": post.sponsored,
        "delivery_info": "FREE delivery",
        "number_of_offers": 1,
        "lowest_offer_price": amount,
        "has_variations": False,
        "sales_volume": None,
        "is_climate_friendly": False,
    }


def omkar_review(world: World, post: Post, remark: Remark) -> dict[str, Any]:
    """One review at omkar.cloud."""
    return {
        "review_id": remark.id,
        "product_asin": post.id,
        "review_title": remark.title,
        "review_text": remark.body,
        "review_link": f"https://www.amazon.com/gp/customer-reviews/{remark.id}",
        "rating": remark.stars,
        "review_date": dated(world, remark),
        "is_verified_purchase": remark.verified,
        "helpful_votes": remark.votes,
        "reviewer_name": shopper(remark),
        "reviewer_id": spelled(HEX.upper(), 28, remark.id),
        "reviewer_url": None,
        "reviewer_avatar": None,
        "review_images": [],
        "review_video": None,
        "reviewed_variant": {},
        "is_vine_review": False,
    }


def omkar_details(world: World, post: Post, top: Sequence[Remark]) -> dict[str, Any]:
    """One product at omkar.cloud."""
    return {
        "asin": post.id,
        "product_name": post.title,
        "link": _link(post),
        "parent_asin": post.id,
        "landing_asin": post.id,
        "brand_info": f"Visit the {post.place} Store",
        "brand_url": None,
        "current_price": _amount(post),
        "original_price": None,
        "currency": "USD",
        "country": "US",
        "availability": "In Stock" if post.price else "Currently unavailable",
        "rating": post.stars,
        "reviews": post.ratings,
        "detailed_rating": _distribution(post),
        "customer_feedback_summary": None,
        "top_reviews": [omkar_review(world, post, remark) for remark in top],
        "is_bestseller": False,
        "is_amazon_choice": False,
        "is_prime": True,
        "main_image_url": _image(post),
        "key_features": [line for line in post.body.split("\n") if line.strip()],
        "full_description": None,
        "technical_details": {"Manufacturer": post.place},
        "product_details": {"Brand": post.place},
        "variants": {},
    }


def _distribution(post: Post) -> dict[str, int]:
    if post.stars is None:
        return {}
    return {str(5 - at): share for at, share in enumerate(shares(post.stars))}


_TOP = 8
# Pages that Amazon answers with when it does not want to, and their status.
_BLOCKS = {"dogs": 503, "captcha": 200, "waf": 202}
_KEY_HEADERS = ("x-api-key", "x-rapidapi-key", "api-key")
_EMPTY = "<!doctype html><html><body><div id='a-page'></div></body></html>"


class Amazon:
    """Answers as www.amazon.com, OpenWeb Ninja and omkar.cloud do, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Build its index on first use; advertisements are not part of what is found."""
        self._world = world
        shelf = world.of("amazon")
        self._index = Index([post for post in shelf if not post.sponsored])
        self._adverts = Index([post for post in shelf if post.sponsored])

    def routes(self) -> list[Route]:
        """Its paths: the shop's, OpenWeb Ninja's, omkar.cloud's."""
        shop = RequestGateway(self._world, "amazon", self.fault)
        paid = RequestGateway(self._world, "amazon", self.fault, self.guard)
        return [
            shop.route("/s", "search", self.search),
            shop.route("/dp/{asin}", "product", self.product),
            shop.route("/{slug}/dp/{asin}", "product", self.product),
            shop.route("/product-reviews/{asin}", "reviews", self.reviews),
            shop.route("/gp/customer-reviews/{id}", "reviews", self.reviews),
            shop.route("/ap/signin", "signin", lambda _: HTMLResponse(render("sign_in"))),
            paid.route("/search", "search", self.ninja_search),
            paid.route("/product-details", "product", self.ninja_details),
            paid.route("/top-product-reviews", "reviews", self.ninja_reviews),
            paid.route("/amazon/search", "search", self.omkar_search),
            paid.route("/amazon/product-details", "product", self.omkar_details),
            paid.route("/amazon/product-reviews/top", "reviews", self.omkar_reviews),
        ]

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in the words of the shop, or of a provider that has it with the shop."""
        path = call.request.url.path
        if kind == "401":
            return JSONResponse({"message": "Invalid API key."}, 401)
        if kind == "429":
            return JSONResponse({"message": "You have exceeded the quota of your plan."}, 429)
        if path == "/s" or "/dp/" in path or path.startswith(("/ap/", "/product-reviews/")):
            if kind in _BLOCKS:
                headers = {"x-amzn-waf-action": "challenge"} if kind == "waf" else None
                return HTMLResponse(render(kind), _BLOCKS[kind], headers)
            if kind == "signin" and not path.startswith("/ap/"):
                return _to_sign_in("/")
            return HTMLResponse(_EMPTY) if kind == "empty" else None
        if kind in {*_BLOCKS, "signin"}:
            error = {"message": "The upstream page could not be read.", "code": 502}
            return JSONResponse({"status": "ERROR", "request_id": "0", "error": error})
        if kind == "empty":
            return JSONResponse({"status": "OK", "request_id": "0", "data": {}, "results": []})
        return None

    def guard(self, call: SandboxCall) -> Response | None:
        """The providers' key check."""
        headers, known = call.request.headers, self._world.options.amazon_key
        key = next((headers[name] for name in _KEY_HEADERS if headers.get(name)), "")
        if key and known in (None, key):
            return None
        message = "Invalid API key. Go to the provider for more info."
        return JSONResponse({"message": message}, 401)

    def _hits(self, query: str) -> tuple[list[Post], Post | None]:
        """What a search finds, and its advertisement: the best match, else any, else a product."""
        hits = self._index.search(query)
        adverts = self._adverts.search(query) or list(self._adverts.posts) or hits
        return hits, adverts[0] if adverts else None

    def search(self, call: SandboxCall) -> Response:
        """The shop's page of results."""
        query = call.query.get("k", "")
        hits, advert = self._hits(query)
        return HTMLResponse(search_page(query, hits, max(call.number("page", 1), 1), advert))

    def product(self, call: SandboxCall) -> Response:
        """A product's page, or that it is no more."""
        post = self._world.post("amazon", call.request.path_params["asin"])
        if post is None:
            return HTMLResponse(render("missing"), 404)
        return HTMLResponse(product_page(self._world, post))

    def reviews(self, call: SandboxCall) -> Response:
        """All reviews have been behind a sign-in since November 2024."""
        return _to_sign_in(call.request.url.path)

    def _shelf(self, call: SandboxCall) -> tuple[list[Post], int]:
        """One page of a provider's search, its advertisement first; how many hits there are."""
        hits, advert = self._hits(call.query.get("query", ""))
        start = (max(call.number("page", 1), 1) - 1) * TILES
        page = hits[start : start + TILES]
        if page and advert is not None and advert.sponsored:
            page = [advert, *page]
        return page, len(hits)

    def _post(self, call: SandboxCall) -> Post | None:
        return self._world.post("amazon", call.query.get("asin"))

    def ninja_search(self, call: SandboxCall) -> Response:
        """OpenWeb Ninja's search."""
        if not call.query.get("query"):
            error = {"message": "The query parameter is required.", "code": 400}
            return JSONResponse({"status": "ERROR", "request_id": "0", "error": error}, 400)
        shelf, total = self._shelf(call)
        data = {
            "total_products": total,
            "country": "US",
            "domain": "www.amazon.com",
            "products": [ninja_product(post) for post in shelf],
        }
        return JSONResponse(ninja(call.query, data))

    def ninja_details(self, call: SandboxCall) -> Response:
        """OpenWeb Ninja's product; empty data for an unknown one."""
        post = self._post(call)
        data = {} if post is None else ninja_details(post)
        return JSONResponse(ninja(call.query, data))

    def ninja_reviews(self, call: SandboxCall) -> Response:
        """OpenWeb Ninja's first reviews of a product; none for an unknown one."""
        post = self._post(call)
        top = () if post is None else post.comments[:_TOP]
        data: dict[str, Any] = {
            "asin": call.query.get("asin"),
            "country": "US",
            "domain": "www.amazon.com",
            "reviews": [ninja_review(self._world, post, r) for r in top if post],
        }
        return JSONResponse(ninja(call.query, data))

    def omkar_search(self, call: SandboxCall) -> Response:
        """omkar.cloud's search."""
        if not call.query.get("query"):
            return JSONResponse({"message": "query is required"}, 400)
        results = [omkar_product(post) for post in self._shelf(call)[0]]
        return JSONResponse({"results": results})

    def omkar_details(self, call: SandboxCall) -> Response:
        """omkar.cloud's product with its first reviews; 404 for an unknown one."""
        post = self._post(call)
        if post is None:
            return JSONResponse({"message": "Product not found"}, 404)
        return JSONResponse(omkar_details(self._world, post, post.comments[:_TOP]))

    def omkar_reviews(self, call: SandboxCall) -> Response:
        """omkar.cloud's first reviews of a product; 404 for an unknown one."""
        post = self._post(call)
        if post is None:
            return JSONResponse({"message": "Product not found"}, 404)
        top = [omkar_review(self._world, post, remark) for remark in post.comments[:_TOP]]
        return JSONResponse({"results": top})


def _to_sign_in(back: str) -> Response:
    target = f"/ap/signin?openid.return_to=https%3A%2F%2Fwww.amazon.com{back}"
    return RedirectResponse(target, 302)
