"""Review links: who holds one may listen to a project of the owner's and comment, nothing else."""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated

from filelock import FileLock, Timeout
from pydantic import Field, TypeAdapter

from studio.engine.event_log import EventLog
from studio.errors import Conflict, FileDamaged, FormatNewer, NotFound, StorageFailed
from studio.services.studio import Studio
from studio.storage.disk import Disk, read_file, storage_errors
from studio.storage.file_cache import FileState, read_state
from studio.storage.records import LOST_ERRORS, MAX_TIME_S, RecordFormat, mend, set_aside

log = logging.getLogger(__name__)

MAX_LINKS = 100
"""Of one studio."""

LINKS_FILE = "reviews.json"
LINKS_FORMAT = RecordFormat("The list of review links")

_USE_SAVED_EVERY_S = 60.0
_MAX_ENDS = 100
_LOCK_TIMEOUT_S = 10.0

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
        self.studio = studio
        self.public_url: str | None = None
        self.ended: EventLog[str] = EventLog(_MAX_ENDS)
        self._clock = clock
        self._disk = Disk()
        self._path = studio.options.workspace / LINKS_FILE
        # Guards the tables; the file's own lock is held by whoever writes it, in any process.
        self._lock = threading.Lock()
        self._file_lock = FileLock(f"{self._path}.lock", timeout=_LOCK_TIMEOUT_S)
        self._saved_s = 0.0
        self._state: FileState | None = None
        self._by_digest: dict[str, ReviewLink] = {}
        self._newer: FormatNewer | None = None
        self._notice: str | None = None
        with self._lock:
            self._refresh()

    def create(self, project_id: str) -> tuple[ReviewLink, str]:
        """Create a link to a project; returns it with its token, which is kept nowhere.

        Raises:
            Conflict: There are too many links.
            StorageFailed: It can't be saved; there is no link.
        """
        token = secrets.token_urlsafe(24)
        link = ReviewLink(secrets.token_hex(6), project_id, _digest(token), self._clock())
        known = self._list_known_projects()
        with self._change():
            kept = {key: one for key, one in self._by_digest.items() if one.project_id in known}
            if len(kept) >= MAX_LINKS:
                raise Conflict(f"There are {MAX_LINKS} review links already. Revoke some first.")
            self._save({**kept, link.digest: link})
        return link, token

    def list_for(self, project_id: str) -> list[ReviewLink]:
        """A project's links, the oldest first.

        Raises:
            FormatNewer: A newer studio wrote the list.
            FileDamaged: It was damaged; said once.
        """
        with self._lock:
            self._refresh()
            self._check_version()
            if self._notice is not None:
                notice, self._notice = self._notice, None
                raise FileDamaged(notice)
            return [one for one in self._by_digest.values() if one.project_id == project_id]

    def use(self, token: str) -> ReviewLink:
        """The link of a token, of which the use is noted.

        Raises:
            NotFound: It has ended, or there never was one.
        """
        now_s = self._clock()
        with self._lock:
            self._refresh()
            link = self._by_digest.get(_digest(token))
            if link is None:
                raise NotFound(LINK_ENDED)
            self._by_digest[link.digest] = replace(link, used_at_s=now_s)
            is_due = link.used_at_s is None or abs(now_s - self._saved_s) > _USE_SAVED_EVERY_S
        if is_due:
            with suppress(StorageFailed, FormatNewer, Conflict), self._change():
                # On a full disk, and while another studio holds the list, listening goes on.
                if link.digest in self._by_digest:
                    used = replace(self._by_digest[link.digest], used_at_s=now_s)
                    self._save({**self._by_digest, link.digest: used})
        return link

    def is_open(self, link: ReviewLink) -> bool:
        """Whether a link hasn't been ended."""
        with self._lock:
            self._refresh()
            return link.digest in self._by_digest

    def end(self, project_id: str, review_id: str) -> None:
        """End a link at once, for what is open as well.

        Raises:
            NotFound: The project has no such link.
            StorageFailed: It can't be saved; the link is still open.
        """
        with self._change():
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
        self._by_digest, self._state = links, None
        self._saved_s = self._clock()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Hold the locks for a change of the list as it is on the disk now."""
        with self._lock, storage_errors(self._path):
            try:
                with self._file_lock:
                    self._refresh()
                    self._check_version()
                    yield
            except Timeout as error:  # which is an OSError, too
                message = "Another studio holds the list of review links. Try again."
                raise Conflict(message) from error

    def _check_version(self) -> None:
        if self._newer is not None:
            raise FormatNewer(str(self._newer))

    def _refresh(self) -> None:
        """Read the list again if it has changed, as another studio may have changed it.

        One that is damaged is kept beside it, and opens nothing.
        """
        try:
            state = read_state(self._path)
            if state == self._state:
                return
            used = self._by_digest
            links = self._read()
        except OSError as error:
            log.warning("%s can't be read: %s", self._path, error)
            return
        self._by_digest = {one.digest: used.get(one.digest, one) for one in links}
        self._state = state if state.is_settled else None

    def _read(self) -> list[ReviewLink]:
        self._newer = None
        try:
            record = LINKS_FORMAT.decode(mend(read_file(self._path)))
            return _LINKS_ADAPTER.validate_python(record["links"])
        except FileNotFoundError:
            return []
        except FormatNewer as error:
            log.warning("%s", error)
            self._newer = error
        except (OSError, ValueError, LookupError) as error:
            if isinstance(error, OSError) and error.errno not in LOST_ERRORS:
                raise
            with suppress(StorageFailed):
                kept = set_aside(self._disk, self._path)
                self._disk.remove(self._path)
                log.warning(
                    "%s was damaged (%s), so review links have ended; it is kept as %s",
                    self._path,
                    error,
                    kept.name,
                )
                self._notice = (
                    f"{LINKS_FILE} was damaged, so review links have ended; it is kept as "
                    f"“{kept.name}”. Make new ones."
                )
        return []

    def _list_known_projects(self) -> set[str]:
        projects = self.studio.projects
        cards = (*projects.list_summaries(), *projects.list_removed())
        return {card.project_id for card in cards}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
