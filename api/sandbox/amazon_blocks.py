"""The pages Amazon answers with when it does not want to."""

from __future__ import annotations

from starlette.responses import HTMLResponse, RedirectResponse, Response

from api.sandbox.pages import render


def blocked(kind: str) -> Response | None:
    """The page of one fault, with the status it comes with."""
    if kind == "dogs":
        return HTMLResponse(render("dogs"), 503)
    if kind == "captcha":
        return HTMLResponse(render("captcha"), 200)
    if kind == "waf":
        return HTMLResponse(render("waf"), 202, {"x-amzn-waf-action": "challenge"})
    return to_sign_in("/") if kind == "signin" else None


def to_sign_in(back: str) -> Response:
    """What `/product-reviews/` has answered since November 2024."""
    target = f"/ap/signin?openid.return_to=https%3A%2F%2Fwww.amazon.com{back}"
    return RedirectResponse(target, 302)


def sign_in() -> Response:
    """The page that redirect leads to."""
    return HTMLResponse(render("sign_in"))


def missing() -> Response:
    """A product that is no more."""
    return HTMLResponse(render("missing"), 404)
