"""Four shapes of JSON that tools return, made up: flat rows, nested orders, nested maps, half-nested users."""

from __future__ import annotations

import random
from typing import Any

NAMES = ("Ana", "Bela", "Chidi", "Dora", "Emeka", "Farid", "Gita", "Hana", "Ivo", "Jun", "Kofi", "Lena")
STREETS = ("Elm Street", "Mill Lane", "Harbour Road", "Station Way", "North Avenue")
CITIES = (("Lisbon", "PT"), ("Tallinn", "EE"), ("Graz", "AT"), ("Leeds", "GB"), ("Turin", "IT"))
GOODS: dict[str, dict[str, tuple[str, ...]]] = {
    "Desk lamp": {"colour": ("black", "white"), "bulb": ("LED", "halogen"), "height": ("low", "tall")},
    "Headphones": {"kind": ("in-ear", "over-ear"), "colour": ("red", "blue"), "wireless": ("yes", "no")},
    "Notebook": {"size": ("A4", "A5"), "cover": ("hard", "soft")},
    "Water bottle": {"capacity": ("500ml", "750ml"), "material": ("glass", "steel"), "colour": ("green", "grey")},
    "Keyboard": {"switch type": ("linear", "tactile"), "backlight": ("none", "white"), "layout": ("full", "80%")},
    "Backpack": {"volume": ("20l", "35l"), "compartment": ("laptop", "camera"), "material": ("nylon", "leather")},
}


def flat_rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Rows of scalars, all with the same keys."""
    dice = random.Random(seed)
    return [
        {
            "id": number,
            "sku": f"{dice.choice('ABCDEF')}{dice.randrange(10**5):05}",
            "name": dice.choice(tuple(GOODS)),
            "price": round(dice.uniform(3, 300), 2),
            "stock": dice.randrange(400),
            "city": dice.choice(CITIES)[0],
            "updated": _time(dice),
            "active": dice.random() < 0.9,
        }
        for number in range(1, count + 1)
    ]


def nested_orders(count: int, seed: int = 2) -> list[dict[str, Any]]:
    """Orders with an address, items with options of their own kind, deliveries and payments."""
    dice = random.Random(seed)
    return [_order(dice) for _ in range(count)]


def nested_maps(count: int, seed: int = 3) -> dict[str, Any]:
    """Products by name, each with variants by their id."""
    dice = random.Random(seed)
    found = {}
    for number in range(count):
        kind = dice.choice(tuple(GOODS))
        variants = {}
        for _ in range(dice.randint(4, 12)):
            item = _id(dice)
            variants[item] = {
                "item_id": item,
                "options": _options(dice, kind),
                "available": dice.random() < 0.7,
                "price": round(dice.uniform(3, 300), 2),
            }
        found[f"{kind} {number}"] = {"name": kind, "product_id": _id(dice), "variants": variants}
    return found


def half_nested_users(count: int, seed: int = 4) -> dict[str, Any]:
    """Users by their id: flat fields, a name, an address, payment methods by their id, a list of orders."""
    dice = random.Random(seed)
    found = {}
    for _ in range(count):
        first = dice.choice(NAMES)
        methods = {}
        for _ in range(dice.randint(1, 3)):
            source = dice.choice(("card", "gift"))
            method = f"{source}_{dice.randrange(10**7)}"
            methods[method] = {"source": source, "id": method} | (
                {"brand": "visa", "last_four": f"{dice.randrange(10**4):04}"}
                if source == "card"
                else {"balance": 20}
            )
        found[f"{first.lower()}_{dice.randrange(10**4)}"] = {
            "name": {"first_name": first, "last_name": dice.choice(NAMES)},
            "address": _address(dice),
            "email": f"{first.lower()}{dice.randrange(10**4)}@example.com",
            "payment_methods": methods,
            "orders": [f"#W{dice.randrange(10**7)}" for _ in range(dice.randint(0, 4))],
        }
    return found


def _order(dice: random.Random) -> dict[str, Any]:
    items = [dice.choice(tuple(GOODS)) for _ in range(dice.randint(1, 4))]
    ids = [_id(dice) for _ in items]
    prices = [round(dice.uniform(3, 300), 2) for _ in items]
    return {
        "order_id": f"#W{dice.randrange(10**7)}",
        "user_id": f"{dice.choice(NAMES).lower()}_{dice.randrange(10**4)}",
        "address": _address(dice),
        "items": [
            {
                "name": kind,
                "product_id": _id(dice),
                "item_id": item,
                "price": price,
                "options": _options(dice, kind),
            }
            for kind, item, price in zip(items, ids, prices, strict=True)
        ],
        "deliveries": [{"tracking_id": [_id(dice)], "item_ids": ids}] if dice.random() < 0.6 else [],
        "status": dice.choice(("pending", "processed", "delivered", "cancelled")),
        "payments": [
            {"type": "payment", "amount": round(sum(prices), 2), "method": f"card_{dice.randrange(10**7)}"}
        ],
    }


def _options(dice: random.Random, kind: str) -> dict[str, str]:
    return {option: dice.choice(choices) for option, choices in GOODS[kind].items()}


def _address(dice: random.Random) -> dict[str, str]:
    city, country = dice.choice(CITIES)
    return {
        "street": f"{dice.randrange(1, 999)} {dice.choice(STREETS)}",
        "extra": f"Suite {dice.randrange(100, 999)}",
        "city": city,
        "country": country,
        "zip": f"{dice.randrange(10**5):05}",
    }


def _id(dice: random.Random) -> str:
    return str(dice.randrange(10**9, 10**10))


def _time(dice: random.Random) -> str:
    day = f"2031-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
    return f"{day}T{dice.randrange(24):02}:{dice.randrange(60):02}:00Z"
