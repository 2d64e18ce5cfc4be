"""The database, and the keys that it and the environment know."""

from __future__ import annotations

from api.judges.embedding import embed
from api.services.keeping.keys import Keys
from api.services.keeping.storage import Store
from api.settings import Settings
from api.store import open_store


async def open_store_of(settings: Settings) -> Store:
    """The store alone.

    Raises:
        ConfigurationError: the database URL is none of ours.
        StoreUnavailable: the database cannot be used.
    """
    return await open_store(settings.general.database_url, embed)


def environment_keys(settings: Settings, store: Store) -> Keys:
    """The keys of the environment, and those of the store."""
    secret = settings.general.api_keys
    return Keys(secret.get_secret_value().split(",") if secret else (), store)
