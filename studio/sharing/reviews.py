"""Review links: who holds one may listen to a project of the owner's and comment, nothing else."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated

from pydantic import Field, TypeAdapter

from studio.engine.event_log import EventLog
from studio.errors import Conflict, FormatNewer, NotFound, StorageFailed
from studio.services.studio import Studio
from studio.storage.disk import Disk
from studio.storage.records import MAX_TIME_S, RecordFormat

MAX_LINKS = 100
"""Of one studio."""

LINKS_FILE = "reviews.json"
LINKS_FORMAT = RecordFormat("The list of review links")

_USE_SAVED_EVERY_S = 60.0
_MAX_ENDS = 100

LINK_ENDED = "This review link has ended, or there never was one. Ask for a new link."

_Time = Annotated[float, Field(ge=0, le=MAX_TIME_S)]


@dataclass(frozen=True, slots=True)
class ReviewLink:
    """A review link, without its token, which only its holders have.

    Attributes:
        review_id: Names the link to the owner; it opens nothing.
        digest: SHA-256 of the token, in hexadecimal.
        made_at_s: When it was made, in seconds since 1970.
        used_at_s: When it was used last; None if it never was.
    """

    review_id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    project_id: Annotated[str, Field(max_length=100)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    made_at_s: _Time
    used_at_s: _Time | None = None


_LINKS_ADAPTER: TypeAdapter[list[ReviewLink]] = TypeAdapter(list[ReviewLink])


class ReviewLinks:
    """All review links of a shared studio; safe from any thread.

    Attributes:
        studio: The owner's, whose projects are reviewed.
        public_url: The address at which others reach the studio, if it is known.
        ended: The ids of links as they end, for streams that are open.
    """

    def __init__(self, studio: Studio, *, clock: Callable[[], float] = time.time) -> None:
        """Read the links of the studio's workspace; a list that is damaged opens nothing."""
        self.studio = studio
        self.public_url: str | None = None
        self.ended: EventLog[str] = EventLog(_MAX_ENDS)
        self._clock = clock
        self._disk = Disk()
        self._path = studio.options.workspace / LINKS_FILE
        # Guards the tables and the file.
        self._lock = threading.Lock()
        self._saved_s = 0.0
        self._by_digest: dict[str, ReviewLink] = {}
        with suppress(OSError, ValueError, LookupError, FormatNewer):
            record = LINKS_FORMAT.decode(self._path.read_bytes())
            links = _LINKS_ADAPTER.validate_python(record["links"])
            self._by_digest = {one.digest: one for one in links}

    def create(self, project_id: str) -> tuple[ReviewLink, str]:
        """Create a link to a project; returns it with its token, which is kept nowhere.

        Raises:
            Conflict: There are too many links.
            StorageFailed: It can't be saved; there is no link.
        """
        token = secrets.token_urlsafe(24)
        link = ReviewLink(secrets.token_hex(6), project_id, _digest(token), self._clock())
        known = self._list_known_projects()
        with self._lock:
            kept = {key: one for key, one in self._by_digest.items() if one.project_id in known}
            if len(kept) >= MAX_LINKS:
                raise Conflict(f"There are {MAX_LINKS} review links already. Revoke some first.")
            self._save({**kept, link.digest: link})
        return link, token

    def list_for(self, project_id: str) -> list[ReviewLink]:
        """A project's links, the oldest first."""
        with self._lock:
            return [one for one in self._by_digest.values() if one.project_id == project_id]

    def use(self, token: str) -> ReviewLink:
        """The link of a token, of which the use is noted.

        Raises:
            NotFound: It has ended, or there never was one.
        """
        now_s = self._clock()
        with self._lock:
            link = self._by_digest.get(_digest(token))
            if link is None:
                raise NotFound(LINK_ENDED)
            self._by_digest[link.digest] = replace(link, used_at_s=now_s)
            if link.used_at_s is None or now_s - self._saved_s > _USE_SAVED_EVERY_S:
                with suppress(StorageFailed):  # the disk is full: listening goes on
                    self._save(self._by_digest)
        return link

    def is_open(self, link: ReviewLink) -> bool:
        """Whether a link hasn't been ended."""
        return link.digest in self._by_digest

    def end(self, project_id: str, review_id: str) -> None:
        """End a link at once, for what is open as well.

        Raises:
            NotFound: The project has no such link.
            StorageFailed: It can't be saved; the link is still open.
        """
        with self._lock:
            rest = {
                key: one
                for key, one in self._by_digest.items()
                if (one.project_id, one.review_id) != (project_id, review_id)
            }
            if len(rest) == len(self._by_digest):
                raise NotFound("This review link has been ended already.")
            self._save(rest)
        self.ended.append(review_id)

    def _save(self, links: dict[str, ReviewLink]) -> None:
        record = {"links": [asdict(one) for one in links.values()]}
        LINKS_FORMAT.write(self._disk, self._path, record)
        self._by_digest = links
        self._saved_s = self._clock()

    def _list_known_projects(self) -> set[str]:
        projects = self.studio.projects
        cards = (*projects.list_summaries(), *projects.list_removed())
        return {card.project_id for card in cards}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
