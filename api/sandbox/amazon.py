"""Amazon: its own pages and two providers' JSON, over the same products."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.sandbox import amazon_blocks as blocks
from api.sandbox import amazon_product, amazon_search
from api.sandbox import amazon_providers as providers
from api.sandbox.corpus import Post
from api.sandbox.search import Index
from api.sandbox.world import Answer, Call, Desk, World

_TOP = 8


class Amazon:
    """Answers as www.amazon.com, OpenWeb Ninja and omkar.cloud do, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Build its index on first use; advertisements are not part of what is found."""
        self._world = world
        shelf = world.of("amazon")
        self._index = Index([post for post in shelf if not post.sponsored])
        self._adverts = Index([post for post in shelf if post.sponsored])

    def routes(self) -> list[Route]:
        """Its paths."""
        desk = Desk(self._world, "amazon", self._fault)
        keyed = self._keyed
        return [
            desk.route("/s", "search", self._page),
            desk.route("/dp/{asin}", "product", self._product),
            desk.route("/{slug}/dp/{asin}", "product", self._product),
            desk.route(
                "/product-reviews/{asin}",
                "reviews",
                lambda call: blocks.to_sign_in(call.request.url.path),
            ),
            desk.route(
                "/gp/customer-reviews/{id}",
                "reviews",
                lambda call: blocks.to_sign_in(call.request.url.path),
            ),
            desk.route("/ap/signin", "signin", lambda call: blocks.sign_in()),
            desk.route("/search", "search", keyed(self._ninja_search)),
            desk.route("/product-details", "product", keyed(self._ninja_details)),
            desk.route("/top-product-reviews", "reviews", keyed(self._ninja_reviews)),
            desk.route("/amazon/search", "search", keyed(self._omkar_search)),
            desk.route("/amazon/product-details", "product", keyed(self._omkar_details)),
            desk.route("/amazon/product-reviews/top", "reviews", keyed(self._omkar_reviews)),
        ]

    def _fault(self, kind: str, call: Call) -> Response | None:
        path = call.request.url.path
        if kind == "401":
            return JSONResponse({"message": "Invalid API key."}, 401)
        if kind == "429":
            return JSONResponse({"message": "You have exceeded the quota of your plan."}, 429)
        page = path == "/s" or "/dp/" in path or path.startswith(("/ap/", "/product-reviews/"))
        if page:
            if kind == "signin" and path.startswith("/ap/"):
                return None
            if kind == "empty":
                return HTMLResponse(
                    "<!doctype html><html><body><div id='a-page'></div></body></html>"
                )
            return blocks.blocked(kind)
        if kind in {"captcha", "dogs", "waf", "signin"}:
            error = {"message": "The upstream page could not be read.", "code": 502}
            return JSONResponse({"status": "ERROR", "request_id": "0", "error": error})
        if kind == "empty":
            return JSONResponse({"status": "OK", "request_id": "0", "data": {}, "results": []})
        return None

    def _keyed(self, answer: Answer) -> Answer:
        """The answer behind a provider's key check."""

        def serve(call: Call) -> Response:
            headers, known = call.request.headers, self._world.options.amazon_key
            key = next(
                (headers[n] for n in ("x-api-key", "x-rapidapi-key", "api-key") if headers.get(n)),
                "",
            )
            if not key or (known is not None and key != known):
                return JSONResponse(
                    {"message": "Invalid API key. Go to the provider for more info."}, 401
                )
            made = answer(call)
            assert isinstance(made, Response)
            return made

        return serve

    def _found(self, query: str) -> list[Post]:
        return self._index.search(query)

    def _advert(self, query: str, found: list[Post]) -> Post | None:
        """The advertisement of a search: the best match, else any, else the best product."""
        adverts = self._adverts.search(query) or list(self._adverts.posts) or found
        return adverts[0] if adverts else None

    def _page(self, call: Call) -> Response:
        query = call.query.get("k", "")
        found = self._found(query)
        number = max(_number(call.query.get("page")), 1)
        return HTMLResponse(amazon_search.page(query, found, number, self._advert(query, found)))

    def _product(self, call: Call) -> Response:
        post = self._world.post("amazon", call.request.path_params["asin"])
        return (
            blocks.missing()
            if post is None
            else HTMLResponse(amazon_product.page(self._world, post))
        )

    def _shelf(self, call: Call) -> list[Post]:
        """One page of a provider's search, its advertisement first."""
        query, start = (
            call.query.get("query", ""),
            (max(_number(call.query.get("page")), 1) - 1) * amazon_search.TILES,
        )
        found = self._found(query)
        page = found[start : start + amazon_search.TILES]
        advert = self._advert(query, found)
        return [advert, *page] if page and advert is not None and advert.sponsored else page

    def _asked(self, call: Call) -> Post | None:
        return self._world.post("amazon", call.query.get("asin"))

    def _ninja_search(self, call: Call) -> Response:
        if not call.query.get("query"):
            error = {"message": "The query parameter is required.", "code": 400}
            return JSONResponse({"status": "ERROR", "request_id": "0", "error": error}, 400)
        products = [providers.ninja_product(post) for post in self._shelf(call)]
        total = len(self._found(call.query["query"]))
        data = {
            "total_products": total,
            "country": "US",
            "domain": "www.amazon.com",
            "products": products,
        }
        return JSONResponse(providers.ninja(call.query, data))

    def _ninja_details(self, call: Call) -> Response:
        post = self._asked(call)
        return JSONResponse(
            providers.ninja(call.query, {} if post is None else providers.ninja_details(post))
        )

    def _ninja_reviews(self, call: Call) -> Response:
        post = self._asked(call)
        data: dict[str, Any] = {
            "asin": call.query.get("asin"),
            "country": "US",
            "domain": "www.amazon.com",
        }
        remarks = [] if post is None else list(post.comments[:_TOP])
        data["reviews"] = [
            providers.ninja_review(self._world, post, r) for r in remarks if post is not None
        ]
        return JSONResponse(providers.ninja(call.query, data))

    def _omkar_search(self, call: Call) -> Response:
        if not call.query.get("query"):
            return JSONResponse({"message": "query is required"}, 400)
        return JSONResponse(
            {"results": [providers.omkar_product(post) for post in self._shelf(call)]}
        )

    def _omkar_details(self, call: Call) -> Response:
        post = self._asked(call)
        if post is None:
            return JSONResponse({"message": "Product not found"}, 404)
        return JSONResponse(providers.omkar_details(self._world, post, post.comments[:_TOP]))

    def _omkar_reviews(self, call: Call) -> Response:
        post = self._asked(call)
        if post is None:
            return JSONResponse({"message": "Product not found"}, 404)
        made = [
            providers.omkar_review(self._world, post, remark) for remark in post.comments[:_TOP]
        ]
        return JSONResponse({"results": made})


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 1
