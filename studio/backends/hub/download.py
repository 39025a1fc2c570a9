"""Downloads from the model hub into its own cache, file by file, each resumable."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import socket
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import Any
from urllib.parse import quote

import httpx
from filelock import FileLock, Timeout
from huggingface_hub import constants, get_token, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)
from huggingface_hub.utils import hf_raise_for_status, validate_repo_id  # type: ignore[attr-defined] # its exports are lazy
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from studio.backends.base import LoadProgress, WeightFile, WeightSource
from studio.backends.hub.cache import blob_path, model_folder, note_ref, snapshot
from studio.errors import ModelUnavailable
from studio.storage.disk import hash_file, read_json

_REPORT_EVERY_S = 0.2
_ANSWER_WITHIN_S = 60.0
_MAX_ANSWER_BYTES = 10_000_000  # the list of 30,000 files is shorter
_BLOCK_BYTES = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


class DownloadMeter:
    """Counts bytes and reports them, at most five times a second.

    The report is also where a download is cancelled: it may raise. Both counts may be set: another
    place has a file in other packing.
    """

    def __init__(
        self,
        report: Callable[[LoadProgress], None],
        *,
        total_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self.total_bytes = total_bytes
        self._clock = clock
        self.done_bytes = 0
        self._came_bytes = 0
        self._began_s = clock()
        self._reported_s = self._began_s
        self._file = ""

    def skip(self, size_bytes: int) -> None:
        """Count a file that is there already."""
        self.done_bytes += size_bytes

    def begin(self, file: str, *, have_bytes: int) -> None:
        """Begin a file, a part of which may be on the disk already."""
        self._file = file
        self.done_bytes += have_bytes
        self._tell()

    def rewind(self, lost_bytes: int) -> None:
        """Subtract bytes of the file that have to be downloaded again."""
        self.done_bytes -= lost_bytes

    def add(self, size_bytes: int) -> None:
        """Count received bytes."""
        self.done_bytes += size_bytes
        self._came_bytes += size_bytes
        if self._clock() - self._reported_s >= _REPORT_EVERY_S:
            self._tell()

    def say(self, message: str) -> None:
        """Report why nothing comes."""
        self._report(LoadProgress(message, self._fraction))

    @property
    def _fraction(self) -> float | None:
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else None

    def _tell(self) -> None:
        self._reported_s = self._clock()
        elapsed_s = self._reported_s - self._began_s
        speed = f", {self._came_bytes / elapsed_s / 1e6:.1f} MB/s" if elapsed_s > 0 else ""
        done_mb, total_mb = self.done_bytes / 1e6, self.total_bytes / 1e6
        self._report(
            LoadProgress(
                f"Downloading {self._file}: {done_mb:,.0f} of {total_mb:,.0f} MB{speed}",
                self._fraction,
            )
        )


def _elsewhere(name: str) -> str:
    return (
        f"or copy the folder {model_folder(name).name} from the hub's cache on another machine "
        "into this one's"
    )


@contextmanager
def hub_faults(name: str, place: str = "") -> Iterator[None]:
    """Turn the faults of a download, from the hub or another place, into `ModelUnavailable`."""
    try:
        yield
    except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, httpx.RequestError) as error:
        raise ModelUnavailable(_hub_message(name, place, error)) from error
    except OSError as error:
        raise ModelUnavailable(_disk_message(name, error)) from error


def _hub_message(name: str, place: str, error: Exception) -> str:
    match error:
        case HfHubHTTPError() if place:
            return f"{place} can't be had ({error.response.status_code}); try again later."
        case httpx.RequestError() if place:
            return f"{place} can't be reached; check the network and try again."
        case HFValidationError():
            return f"“{name}” is neither a folder nor a model's name on the hub (owner/model)."
        case OfflineModeIsEnabled():
            return (
                f"The model {name} isn't on this machine and HF_HUB_OFFLINE forbids downloads; "
                f"unset it, {_elsewhere(name)}."
            )
        case GatedRepoError():
            return (
                f"The hub gives the model {name} only to who has accepted its terms; accept them "
                "on its page, sign in with `hf auth login`, and try again."
            )
        case RevisionNotFoundError():
            return f"The model {name} on the hub has no such revision; correct it."
        case HfHubHTTPError() if error.response.status_code in (401, 403, 404):
            return (
                f"The hub has no model {name}, or it is private; correct the name, or sign in "
                "with `hf auth login`, and try again."
            )
        case HfHubHTTPError():
            return (
                f"The hub answered {error.response.status_code} for the model {name}; try again "
                f"in a few minutes, {_elsewhere(name)}."
            )
        case _:
            return (
                f"The hub at {constants.ENDPOINT} can't be reached for the model {name}, or the "
                f"connection broke; check the network and try again (what has come is kept), "
                f"{_elsewhere(name)}."
            )


def _disk_message(name: str, error: OSError) -> str:
    if error.errno in _FULL:
        return (
            f"The disk is full: the model {name} couldn't be stored in {constants.HF_HUB_CACHE}; "
            "make room, or set HF_HOME to a folder on a larger disk, and try again."
        )
    reason = error.strerror or error
    return (
        f"The model {name} couldn't be stored in {constants.HF_HUB_CACHE} ({reason}); "
        "make the folder writable, or set HF_HOME to another, and try again."
    )


TRIES = 6
LONGEST_WAIT_S = 60.0
_FIRST_WAIT_S = 1.0
_STEP_S = 0.5  # how late a cancelled download is noticed


def with_retries(work: Callable[[], None], report: Callable[[str], None]) -> None:
    """Retry while the hub answers that it is busy or temporarily broken.

    `work` goes on where it stopped. `report` gets the reason while nothing comes, and ends the
    waiting when it raises.
    """

    def sleep(seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            report(f"The hub is busy; trying again in {left_s:.0f} s")
            time.sleep(min(left_s, _STEP_S))

    Retrying(
        retry=retry_if_exception(_is_transient),
        stop=stop_after_attempt(TRIES),
        wait=_backoff_s,
        sleep=sleep,
        reraise=True,
    )(work)


def _is_transient(error: BaseException) -> bool:
    if not isinstance(error, HfHubHTTPError):
        return False
    status = error.response.status_code
    return status in (408, 429) or status >= 500


def _backoff_s(state: RetryCallState) -> float:
    """The hub's Retry-After; else a second, doubled each time."""
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, HfHubHTTPError)
    wished = error.response.headers.get("retry-after", "")
    wait_s = (
        float(wished) if wished.isdecimal() else _FIRST_WAIT_S * 2 ** (state.attempt_number - 1)
    )
    return min(wait_s, LONGEST_WAIT_S)


# The hub's library (1.33) discards a partial file when it is interrupted; weights have
# gigabytes. What is downloaded here lies where the library puts it, so that it finds it too.

SPARE_BYTES = 200_000_000
"""Free bytes that must be left on the disk after a download."""

_HASH = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
TIMEOUT = httpx.Timeout(30.0, connect=10.0)


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file to fetch.

    Attributes:
        etag: Names the file in the cache: SHA-256 of large files, git's SHA-1 of small ones, or an
            MD5 where a catalogue has no better.
        sha256: As a catalogue states it; empty where `etag` alone is checked.
    """

    path: str
    url: str
    size_bytes: int
    etag: str
    sha256: str = ""


def download(
    source: WeightSource, name: str, revision: str | None, progress: Callable[[LoadProgress], None]
) -> Path:
    """Download what the hub's cache lacks of a model; see `fetch_weights`."""
    model = model_folder(name)
    blobs = model / "blobs"
    with hub_faults(name), open_client(with_token=True) as client:
        progress(LoadProgress(f"Asking the hub for {name}"))
        commit, files = _listing(client, source, name, revision)
        folder = model / "snapshots" / commit
        with alone(model, progress):
            lacking = [file for file in files if not (folder / file.path).is_file()]
            here_bytes = sum(size_of(_partial(blobs, file)) for file in lacking)
            check_room(blobs, sum(file.size_bytes for file in lacking) - here_bytes)
            _fetch_all(client, lacking, blobs, progress)
            for file in lacking:
                blob_path(model, commit, file.path, etag=file.etag)
            note_ref(model, revision or constants.DEFAULT_REVISION, commit)
    return folder


def open_client(*, with_token: bool = False, **how: Any) -> httpx.Client:
    """A client without the hub library's own questions, whose answers it would read unbounded.

    Raises:
        OfflineModeIsEnabled: Downloads are forbidden.
    """
    if constants.HF_HUB_OFFLINE:
        raise OfflineModeIsEnabled
    token = get_token() if with_token and not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else None
    headers = {"Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    limits = httpx.Limits(max_keepalive_connections=0)  # for `_open_answer`, which sees new ones
    return httpx.Client(timeout=TIMEOUT, headers=headers, limits=limits, **how)


@contextmanager
def _open_answer(client: httpx.Client, url: str, **headers: str) -> Iterator[httpx.Response]:
    """An answer that begins in time, behind redirects whose bodies aren't read."""
    # httpx itself would read those, however long, and bounds each wait, but not their sum.
    until_s, connections = time.monotonic() + _ANSWER_WITHIN_S, []

    def note(event: str, info: dict[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            connections.append(info["return_value"].get_extra_info("socket"))
            if time.monotonic() >= until_s:
                hang_up()

    def hang_up() -> None:
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    timer = Timer(_ANSWER_WITHIN_S, hang_up)
    timer.start()
    try:
        request = client.build_request("GET", url, headers=headers, extensions={"trace": note})
        for _ in range(client.max_redirects + 1):
            with closing(client.send(request, stream=True)) as answer:
                if (following := answer.next_request) is None:
                    timer.cancel()
                    yield answer
                    return
                request = following
        raise httpx.TooManyRedirects("it has no end", request=request)
    except (UnicodeError, httpx.InvalidURL) as error:  # of a host's name
        raise httpx.UnsupportedProtocol(str(error)) from error
    finally:
        timer.cancel()


def _listing(
    client: httpx.Client, source: WeightSource, name: str, revision: str | None
) -> tuple[str, list[HubFile]]:
    """The commit and the files that match, the small ones first."""
    validate_repo_id(name)
    asked = source.commit or revision
    behind = f"/revision/{quote(asked, safe='')}" if asked else ""
    try:
        body = ask(client, f"{constants.ENDPOINT}/api/models/{name}{behind}?blobs=true")
        info = read_json(body)
        commit = info["sha"]
        files = [_hub_file(name, commit, row) for row in info["siblings"]]
        here = snapshot(name, revision)
        patterns = [_chosen_pattern(name, need, files, here) for need in source.needs]
        wanted = [file for file in files if any(fnmatchcase(file.path, one) for one in patterns)]
        if not _HASH.fullmatch(commit) or not all(map(_is_safe, wanted)):
            raise ValueError("it leads out of the model's folder")
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelUnavailable(
            f"{constants.ENDPOINT} doesn't answer like a model hub; correct HF_ENDPOINT."
        ) from error
    bound = (_hold_to(source, file) for file in wanted)
    return commit, sorted(bound, key=lambda file: file.size_bytes)


def ask(client: httpx.Client, url: str) -> bytes:
    """The body of an answer; raises a ValueError if it has no end."""
    until_s, body = time.monotonic() + _ANSWER_WITHIN_S, b""
    with _open_answer(client, url) as answer:
        _check_status(answer)
        for block in answer.iter_raw():
            body += block
            if len(body) > _MAX_ANSWER_BYTES or time.monotonic() > until_s:
                raise ValueError("it has no end")
    return body


def _check_status(answer: httpx.Response) -> None:
    """Raise as `hf_raise_for_status`, which would read the body of an error, however long."""
    names = ("x-error-code", "x-error-message", "retry-after")
    headers = {name: answer.headers[name] for name in names if name in answer.headers}
    hf_raise_for_status(httpx.Response(answer.status_code, headers=headers, request=answer.request))


def _hold_to(source: WeightSource, file: HubFile) -> HubFile:
    """A file of the hub with what a catalogue states of it, which refuses another one."""
    stated = source.stated.get(file.path, WeightFile(file.path))
    is_long = 0 < stated.size_bytes < file.size_bytes
    if is_long or (len(file.etag) == len(stated.sha256) and file.etag != stated.sha256):
        raise ModelUnavailable(
            f"The hub has another file {file.path} than this studio knows; update the studio."
        )
    return replace(file, sha256=stated.sha256)


def _chosen_pattern(name: str, need: str, files: Sequence[HubFile], here: Path | None) -> str:
    """Of a need's alternatives that the hub has, the first in the cache, or else the first."""
    found = [
        pattern
        for pattern in need.split("|")
        if any(fnmatchcase(file.path, pattern) for file in files)
    ]
    if not found:
        raise ModelUnavailable(
            f"The model {name} on the hub has no file {need.replace('|', ' or ')}; choose a model "
            "of the kind this backend loads, or update the studio if nobody chose one."
        )
    return next((one for one in found if here is not None and (here / one).is_file()), found[0])


def _hub_file(name: str, commit: str, row: Any) -> HubFile:
    path, size_bytes = row["rfilename"], row.get("size", 0)
    etag = row["lfs"]["sha256"] if row.get("lfs") else row.get("blobId", "")
    if type(size_bytes) is not int or size_bytes < 0:
        raise ValueError("its size is no number of bytes")
    return HubFile(path, hf_hub_url(name, path, revision=commit), size_bytes, etag)


def _is_safe(file: HubFile) -> bool:
    """Whether path and etag, which become paths here, stay within the model's folder."""
    path = PurePosixPath(file.path)
    inside = not path.is_absolute() and ".." not in path.parts and "\\" not in file.path
    return inside and _HASH.fullmatch(file.etag) is not None


@contextmanager
def alone(model: Path, progress: Callable[[LoadProgress], None]) -> Iterator[None]:
    """Wait until no other process downloads this model, whose folder is made if need be."""
    (model / "blobs").mkdir(parents=True, exist_ok=True)
    lock = FileLock(model / ".download.lock")
    while True:
        try:
            lock.acquire(timeout=0.5)
            break
        except Timeout:
            progress(LoadProgress("Waiting for another program that downloads the same model"))
    try:
        yield
    finally:
        lock.release()


def check_room(folder: Path, wanted_bytes: int) -> None:
    """Refuse a download that a disk has no room for.

    Raises:
        ModelUnavailable: Names both.
    """
    free_bytes = shutil.disk_usage(folder).free
    if wanted_bytes and wanted_bytes + SPARE_BYTES > free_bytes:
        raise ModelUnavailable(
            f"The model needs {wanted_bytes / 1e9:.1f} GB on the disk of {folder}, which has "
            f"{free_bytes / 1e9:.1f} GB free; make room, or set HF_HOME to a folder on a larger "
            "disk."
        )


def _fetch_all(
    client: httpx.Client,
    files: Sequence[HubFile],
    blobs: Path,
    progress: Callable[[LoadProgress], None],
) -> None:
    meter = DownloadMeter(progress, total_bytes=sum(file.size_bytes for file in files))
    for file in files:
        if (blobs / file.etag).is_file():
            meter.skip(file.size_bytes)
            continue
        meter.begin(file.path, have_bytes=size_of(_partial(blobs, file)))
        fetch_file(client, file, _partial(blobs, file), meter)
        _partial(blobs, file).replace(blobs / file.etag)


def fetch_file(client: httpx.Client, file: HubFile, partial: Path, meter: DownloadMeter) -> None:
    """Fetch one file; goes on where a connection broke, as long as each brings something.

    Its beginning may be in `partial` already, and all of it is there afterwards.

    Raises:
        ModelUnavailable: Something else came, or more than the file has.
    """
    if not file.size_bytes:
        partial.touch()
    try:
        while (have_bytes := size_of(partial)) < file.size_bytes:
            try:
                with_retries(lambda: _stream(client, file, partial, meter), meter.say)
            except httpx.TransportError:
                if size_of(partial) <= have_bytes:
                    raise
            else:
                break
    except OSError as error:
        if error.errno in _FULL:
            partial.unlink(missing_ok=True)
        raise
    if not is_whole(partial, file):
        partial.unlink()
        raise ModelUnavailable(
            f"The file {file.path} arrived broken and was thrown away; try again to download it "
            "once more."
        )


def _stream(client: httpx.Client, file: HubFile, partial: Path, meter: DownloadMeter) -> None:
    """Receive a file or its rest, and of what is longer one byte more."""
    have_bytes = size_of(partial)
    headers = {"Range": f"bytes={have_bytes}-"} if have_bytes else {}
    with _open_answer(client, file.url, **headers) as answer:
        _check_status(answer)
        resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
        meter.rewind(0 if resumed else have_bytes)
        left_bytes = file.size_bytes + 1 - (have_bytes if resumed else 0)
        with partial.open("ab" if resumed else "wb") as out:
            for chunk in answer.iter_raw():
                out.write(chunk[:left_bytes])
                meter.add(len(chunk))
                left_bytes -= len(chunk)
                if left_bytes <= 0:
                    break


def _partial(blobs: Path, file: HubFile) -> Path:
    return blobs / f"{file.etag}.partial"


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def is_whole(path: Path, file: HubFile) -> bool:
    """Whether a file has the bytes that are stated; read block by block."""
    expected = file.sha256 or file.etag
    if len(expected) == hashlib.sha256().digest_size * 2:
        return hash_file(path) == expected
    # What is published, such as git's name of a blob; against accidents, not attackers.
    digest = hashlib.md5(usedforsecurity=False)
    if len(expected) != digest.digest_size * 2:
        digest = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
    with path.open("rb") as content:
        while block := content.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest() == expected


def fetch_archive(
    url: str, *, sha256: str, folder: Path, progress: Callable[[LoadProgress], None]
) -> None:
    """Fetch a zip and unpack it; what came before an interruption is kept for the next call.

    Args:
        url: Of the zip.
        sha256: Its digest.
        folder: Where its files will be, all of them or none; not there yet.
        progress: Gets bytes and speed; what it raises ends the download.

    Raises:
        ModelUnavailable: It can't be had, or isn't what it should be.
    """
    packed = folder.with_name(f"{folder.name}.zip.partial")
    try:
        with hub_faults(url, url), open_client() as client:
            folder.parent.mkdir(parents=True, exist_ok=True)
            file = HubFile(folder.name, url, _archive_size_bytes(client, url), sha256)
            check_room(folder.parent, file.size_bytes - size_of(packed))
            meter = DownloadMeter(progress, total_bytes=file.size_bytes)
            meter.begin(file.path, have_bytes=size_of(packed))
            fetch_file(client, file, packed, meter)
            _unpack(packed, folder)
            packed.unlink()
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelUnavailable(f"{url} can't be had ({error}); try again later.") from error


def _archive_size_bytes(client: httpx.Client, url: str) -> int:
    # Asked by GET, as addresses that are signed for one are not for HEAD.
    with _open_answer(client, url) as answer:
        _check_status(answer)
        return int(answer.headers["Content-Length"])


def _unpack(packed: Path, folder: Path) -> None:
    unpacked = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(unpacked, ignore_errors=True)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(unpacked)  # which keeps to the folder
    unpacked.replace(folder)
