"""Amazon: its own pages and two providers' JSON, over the same products."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.sandbox import amazon_providers as providers
from api.sandbox.amazon_pages import TILES, product_page, render, search_page
from api.sandbox.corpus import Post
from api.sandbox.search import Index
from api.sandbox.world import Call, Gateway, World

_TOP = 8
_BLOCKS = {"dogs": 503, "captcha": 200, "waf": 202}
"""Pages that Amazon answers with when it does not want to, and their status."""
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
        shop = Gateway(self._world, "amazon", self.fault)
        paid = Gateway(self._world, "amazon", self.fault, self.guard)
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

    def fault(self, kind: str, call: Call) -> Response | None:
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

    def guard(self, call: Call) -> Response | None:
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

    def search(self, call: Call) -> Response:
        """The shop's page of results."""
        query = call.query.get("k", "")
        hits, advert = self._hits(query)
        return HTMLResponse(search_page(query, hits, max(call.number("page", 1), 1), advert))

    def product(self, call: Call) -> Response:
        """A product's page, or that it is no more."""
        post = self._world.post("amazon", call.request.path_params["asin"])
        if post is None:
            return HTMLResponse(render("missing"), 404)
        return HTMLResponse(product_page(self._world, post))

    def reviews(self, call: Call) -> Response:
        """All reviews have been behind a sign-in since November 2024."""
        return _to_sign_in(call.request.url.path)

    def _shelf(self, call: Call) -> tuple[list[Post], int]:
        """One page of a provider's search, its advertisement first; how many hits there are."""
        hits, advert = self._hits(call.query.get("query", ""))
        start = (max(call.number("page", 1), 1) - 1) * TILES
        page = hits[start : start + TILES]
        if page and advert is not None and advert.sponsored:
            page = [advert, *page]
        return page, len(hits)

    def _post(self, call: Call) -> Post | None:
        return self._world.post("amazon", call.query.get("asin"))

    def ninja_search(self, call: Call) -> Response:
        """OpenWeb Ninja's search."""
        if not call.query.get("query"):
            error = {"message": "The query parameter is required.", "code": 400}
            return JSONResponse({"status": "ERROR", "request_id": "0", "error": error}, 400)
        shelf, total = self._shelf(call)
        data = {
            "total_products": total,
            "country": "US",
            "domain": "www.amazon.com",
            "products": [providers.ninja_product(post) for post in shelf],
        }
        return JSONResponse(providers.ninja(call.query, data))

    def ninja_details(self, call: Call) -> Response:
        """OpenWeb Ninja's product; empty data for an unknown one."""
        post = self._post(call)
        data = {} if post is None else providers.ninja_details(post)
        return JSONResponse(providers.ninja(call.query, data))

    def ninja_reviews(self, call: Call) -> Response:
        """OpenWeb Ninja's first reviews of a product; none for an unknown one."""
        post = self._post(call)
        top = () if post is None else post.comments[:_TOP]
        data: dict[str, Any] = {
            "asin": call.query.get("asin"),
            "country": "US",
            "domain": "www.amazon.com",
            "reviews": [providers.ninja_review(self._world, post, r) for r in top if post],
        }
        return JSONResponse(providers.ninja(call.query, data))

    def omkar_search(self, call: Call) -> Response:
        """omkar.cloud's search."""
        if not call.query.get("query"):
            return JSONResponse({"message": "query is required"}, 400)
        results = [providers.omkar_product(post) for post in self._shelf(call)[0]]
        return JSONResponse({"results": results})

    def omkar_details(self, call: Call) -> Response:
        """omkar.cloud's product with its first reviews; 404 for an unknown one."""
        post = self._post(call)
        if post is None:
            return JSONResponse({"message": "Product not found"}, 404)
        return JSONResponse(providers.omkar_details(self._world, post, post.comments[:_TOP]))

    def omkar_reviews(self, call: Call) -> Response:
        """omkar.cloud's first reviews of a product; 404 for an unknown one."""
        post = self._post(call)
        if post is None:
            return JSONResponse({"message": "Product not found"}, 404)
        top = [providers.omkar_review(self._world, post, remark) for remark in post.comments[:_TOP]]
        return JSONResponse({"results": top})


def _to_sign_in(back: str) -> Response:
    target = f"/ap/signin?openid.return_to=https%3A%2F%2Fwww.amazon.com{back}"
    return RedirectResponse(target, 302)
