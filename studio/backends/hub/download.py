"""Downloads from the model hub into its own cache, file by file, each resumable."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import httpx
from filelock import FileLock, Timeout
from huggingface_hub import HfApi, constants, hf_hub_url
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined] # its exports are lazy

from studio.backends.base import LoadProgress
from studio.backends.hub.transfer import DownloadMeter, hub_faults, with_retries
from studio.errors import ModelUnavailable

# The model hub's cache on this disk, in the layout of the hub's own library.
#
# `blobs/<etag>` hold the files, `snapshots/<commit>/<path>` link to them, and `refs/<revision>`
# name a commit.


def model_folder(name: str) -> Path:
    """Where the cache keeps a model."""
    return Path(constants.HF_HUB_CACHE) / "--".join(("models", *name.split("/")))


def snapshot(name: str, revision: str | None) -> Path | None:
    """A model's files in the cache, complete or not; None when there are none.

    Args:
        name: The model's name on the hub.
        revision: Branch, tag or commit; None for the hub's default.
    """
    model = model_folder(name)
    ref = model / "refs" / (revision or constants.DEFAULT_REVISION)
    commit = ref.read_text().strip() if ref.is_file() else revision
    folder = model / "snapshots" / commit if commit else None
    return folder if folder is not None and folder.is_dir() else None


def blob_path(model: Path, commit: str, path: str, *, etag: str) -> None:
    """Make a blob a file of a snapshot: a link to it, or a copy where links aren't allowed."""
    file = model / "snapshots" / commit / path
    blob = model / "blobs" / etag
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # it may link to a blob that is gone
    try:
        file.symlink_to(os.path.relpath(blob, file.parent))
    except OSError:
        shutil.copyfile(blob, file)


def note_ref(model: Path, revision: str, commit: str) -> None:
    """Remember which commit a branch or tag stood for."""
    if revision == commit:
        return
    ref = model / "refs" / revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit)


# Downloads from the model hub into its own cache, file by file, so that each can be resumed.
#
# The hub's library (1.33) throws a file's beginning away when it is interrupted; weights have
# gigabytes. What is downloaded here lies where the library puts it, so that it finds it too.

SPARE_BYTES = 200_000_000
"""Room that must be left on the disk after a download."""

_HASH = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
TIMEOUT = httpx.Timeout(30.0, connect=10.0)


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a model on the hub.

    Attributes:
        etag: Names the file in the cache: SHA-256 of large files, git's SHA-1 of small ones.
    """

    path: str
    size_bytes: int
    etag: str


def download(
    name: str,
    *,
    needs: Sequence[str],
    revision: str | None,
    progress: Callable[[LoadProgress], None],
) -> Path:
    """Download what the hub's cache lacks of a model; see `fetch_weights`."""
    model = model_folder(name)
    with hub_faults(name):
        progress(LoadProgress(f"Asking the hub for {name}"))
        commit, files = _listing(name, needs, revision)
        folder = model / "snapshots" / commit
        (model / "blobs").mkdir(parents=True, exist_ok=True)
        with _alone(model, progress):
            lacking = [file for file in files if not (folder / file.path).is_file()]
            _check_room(model, lacking)
            _fetch_all(name, commit, lacking, model, progress)
            for file in lacking:
                blob_path(model, commit, file.path, etag=file.etag)
            note_ref(model, revision or constants.DEFAULT_REVISION, commit)
    return folder


def _listing(name: str, needs: Sequence[str], revision: str | None) -> tuple[str, list[HubFile]]:
    """The commit and the files that match, the small ones first."""
    info = HfApi().model_info(name, revision=revision, files_metadata=True, timeout=10)
    files = [_hub_file(sibling) for sibling in info.siblings or ()]
    for pattern in needs:
        if not any(fnmatchcase(file.path, pattern) for file in files):
            raise ModelUnavailable(
                f"The model {name} on the hub has no file {pattern}; choose a model of the kind "
                "this backend loads."
            )
    wanted = [file for file in files if any(fnmatchcase(file.path, one) for one in needs)]
    if not _HASH.fullmatch(info.sha or "") or not all(_is_safe(file) for file in wanted):
        raise ModelUnavailable(
            f"{constants.ENDPOINT} doesn't answer like a model hub; correct HF_ENDPOINT."
        )
    return info.sha or "", sorted(wanted, key=lambda file: file.size_bytes)


def _hub_file(sibling: RepoSibling) -> HubFile:
    etag = sibling.lfs.sha256 if sibling.lfs else sibling.blob_id
    return HubFile(sibling.rfilename, sibling.size or 0, etag or "")


def _is_safe(file: HubFile) -> bool:
    """Whether path and etag, which become paths here, stay within the model's folder."""
    path = PurePosixPath(file.path)
    inside = not path.is_absolute() and ".." not in path.parts and "\\" not in file.path
    return inside and _HASH.fullmatch(file.etag) is not None


@contextmanager
def _alone(model: Path, progress: Callable[[LoadProgress], None]) -> Iterator[None]:
    """Wait until no other process downloads this model."""
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


def _check_room(model: Path, files: Sequence[HubFile]) -> None:
    blobs = model / "blobs"
    wanted_bytes = sum(file.size_bytes - _size_bytes(_partial(blobs, file)) for file in files)
    free_bytes = shutil.disk_usage(blobs).free
    if files and wanted_bytes + SPARE_BYTES > free_bytes:
        raise ModelUnavailable(
            f"The model needs {wanted_bytes / 1e9:.1f} GB on the disk of {blobs}, which has "
            f"{free_bytes / 1e9:.1f} GB free; make room, or set HF_HOME to a folder on a larger "
            "disk."
        )


def _fetch_all(
    name: str,
    commit: str,
    files: Sequence[HubFile],
    model: Path,
    progress: Callable[[LoadProgress], None],
) -> None:
    blobs = model / "blobs"
    meter = DownloadMeter(progress, total_bytes=sum(file.size_bytes for file in files))
    headers = build_hf_headers()
    with httpx.Client(follow_redirects=True, timeout=TIMEOUT, headers=headers) as client:
        for file in files:
            if (blobs / file.etag).is_file():
                meter.skip(file.size_bytes)
                continue
            url = hf_hub_url(name, file.path, revision=commit)
            meter.begin(file.path, have_bytes=_size_bytes(_partial(blobs, file)))
            fetch_file(client, url, file, _partial(blobs, file), meter)
            _partial(blobs, file).replace(blobs / file.etag)


def fetch_file(
    client: httpx.Client, url: str, file: HubFile, partial: Path, meter: DownloadMeter
) -> None:
    """Fetch one file; goes on where a connection broke, as long as each brings something.

    Args:
        client: With the headers that the server is to see.
        url: Of the file.
        file: What it has to be.
        partial: Where its beginning may be already, and where all of it is afterwards.
        meter: Told what comes.

    Raises:
        ModelUnavailable: Something else came.
    """
    partial.touch()
    while (have_bytes := _size_bytes(partial)) < file.size_bytes:
        try:
            with_retries(lambda: _stream(client, url, partial, meter), meter.say)
        except httpx.TransportError:
            if _size_bytes(partial) <= have_bytes:
                raise
        else:
            break
    if _etag(partial, file) != file.etag:
        partial.unlink()
        raise ModelUnavailable(
            f"The file {file.path} arrived broken and was thrown away; load again to download it "
            "anew."
        )


def _stream(client: httpx.Client, url: str, partial: Path, meter: DownloadMeter) -> None:
    have_bytes = _size_bytes(partial)
    headers = {"Accept-Encoding": "identity"}
    if have_bytes:
        headers["Range"] = f"bytes={have_bytes}-"
    with client.stream("GET", url, headers=headers) as answer:
        hf_raise_for_status(answer)
        resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
        meter.rewind(0 if resumed else have_bytes)
        with partial.open("ab" if resumed else "wb") as out:
            for chunk in answer.iter_raw():
                out.write(chunk)
                meter.add(len(chunk))


def _partial(blobs: Path, file: HubFile) -> Path:
    return blobs / f"{file.etag}.partial"


def _size_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _etag(path: Path, file: HubFile) -> str:
    with path.open("rb") as content:
        if len(file.etag) == hashlib.sha256().digest_size * 2:
            return hashlib.file_digest(content, "sha256").hexdigest()
        # Git's name of a blob; no matter of security.
        digest = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
        digest.update(content.read())
        return digest.hexdigest()


def fetch_archive(
    url: str, *, sha256: str, folder: Path, progress: Callable[[LoadProgress], None]
) -> None:
    """Fetch a zip and unpack it; what came before an interruption is kept for the next call.

    Args:
        url: Of the zip.
        sha256: Its digest.
        folder: Where its files will be, all of them or none; not there yet.
        progress: Told bytes and speed; what it raises ends the download.

    Raises:
        ModelUnavailable: It can't be had, or isn't what it should be.
        Cancelled: `progress` raised it.
    """
    packed = folder.with_name(f"{folder.name}.zip.partial")
    with hub_faults(url), _refusals(url):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with httpx.Client(follow_redirects=True, timeout=TIMEOUT) as client:
            file = HubFile(folder.name, _archive_size_bytes(client, url), sha256)
            meter = DownloadMeter(progress, total_bytes=file.size_bytes)
            meter.begin(file.path, have_bytes=packed.stat().st_size if packed.exists() else 0)
            fetch_file(client, url, file, packed, meter)
        _unpack(packed, folder)
        packed.unlink()


@contextmanager
def _refusals(url: str) -> Iterator[None]:
    """A server that has no such file, or says nothing of its size or sends no zip."""
    try:
        yield
    except (httpx.HTTPStatusError, KeyError, zipfile.BadZipFile) as error:
        raise ModelUnavailable(f"{url} can't be had ({error}); load again later.") from error


def _archive_size_bytes(client: httpx.Client, url: str) -> int:
    # Asked by GET, as addresses that are signed for one are not for HEAD.
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer:
        answer.raise_for_status()
        return int(answer.headers["Content-Length"])


def _unpack(packed: Path, folder: Path) -> None:
    unpacked = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(unpacked, ignore_errors=True)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(unpacked)  # which keeps to the folder
    unpacked.replace(folder)
