"""Files that a package fetches from elsewhere than the hub, as one zip with a known digest."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from studio.backends.base import LoadProgress
from studio.backends.loading.download_meter import DownloadMeter
from studio.backends.loading.hub import TIMEOUT, HubFile, fetch_file
from studio.backends.loading.hub_faults import hub_faults
from studio.errors import ModelUnavailable


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
            file = HubFile(folder.name, _size_bytes(client, url), sha256)
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


def _size_bytes(client: httpx.Client, url: str) -> int:
    # Asked by GET, as addresses that are signed for one are not for HEAD.
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer:
        answer.raise_for_status()
        return int(answer.headers["Content-Length"])


def _unpack(packed: Path, folder: Path) -> None:
    beside = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(beside, ignore_errors=True)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(beside)  # which keeps to the folder
    beside.replace(folder)
