"""Two paid providers of Amazon data: OpenWeb Ninja and omkar.cloud, in the fields they send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.sandbox.amazon_pages import dated, shares, shopper, short_count
from api.sandbox.corpus import DIGITS, HEX, Post, Remark, spelled
from api.sandbox.world import World


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
