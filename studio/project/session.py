"""One open project, for everybody who looks at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO

from studio.audio.atomic_file import storage_errors
from studio.audio.doubts import Doubt
from studio.dialog.model import Notice, ParsedScript
from studio.dialog.read import read_dialog_text
from studio.dialog.script import write_script
from studio.project import folder as places
from studio.project.audio_files import bring_audio
from studio.project.bulletin import Bulletin
from studio.project.carrying import brought_in, packs
from studio.project.core import STUDIO, Core
from studio.project.document import Document
from studio.project.folder import Card, ProjectFolder
from studio.project.history import Author, Kind
from studio.project.journal import put_away
from studio.project.keeping import Keeping
from studio.project.lines import LineView
from studio.project.making import Making
from studio.project.moment import Moment
from studio.project.news import EditNews, LineNews, News
from studio.project.ops import Op
from studio.project.rendering import Run
from studio.project.renders import Renders
from studio.project.revising import Revising
from studio.project.space import Held, free_unheard, sizes_of, unused
from studio.project.surroundings import Tools
from studio.project.take import Take
from studio.project.takes import TakeShelf
from studio.project.voices import Ground

_LOOK_EVERY_S = 2.0


class Session:
    """All methods may be called from any thread but the engine's own."""

    def __init__(self, folder: ProjectFolder, tools: Tools) -> None:
        """Open a project; what a render had left to do is gone on with by `resume`.

        Raises:
            StorageFailed: It can't be read.
        """
        self.project_id = folder.root.name
        self.folder = folder
        self._core = core = Core(folder, tools)
        self._revising = Revising(core)
        self._keeping = Keeping(core, self._revising)
        self._renders = Renders(core, self._keeping, self._revising.tell)
        self._revising.changed = self._renders.recheck

    @property
    def lock(self) -> threading.RLock:
        """Held while several things are read that have to fit each other."""
        return self._core.lock

    @property
    def news(self) -> Bulletin[News]:
        """What happens."""
        return self._core.news

    @property
    def shelf(self) -> TakeShelf:
        """All its takes."""
        return self._core.shelf

    @property
    def document(self) -> Document:
        """The document as it is now."""
        return self._core.document

    @property
    def rev(self) -> int:
        """Rises with each edit."""
        return self._core.rev

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return self._core.history.marks.undo is not None

    @property
    def can_redo(self) -> bool:
        """Whether there is an undo to take back."""
        return self._core.history.marks.redo is not None

    @property
    def busy(self) -> bool:
        """Whether a render has anything left to make."""
        return bool(self._core.wanted)

    @property
    def in_use(self) -> bool:
        """Whether somebody looks at it or something is made."""
        return self.busy or self.news.followers > 0

    @property
    def run(self) -> Run | None:
        """The render under way, or the last one."""
        return self._renders.rendering.run

    @property
    def storage_message(self) -> str | None:
        """Why it can't be kept on the disk; None while it can."""
        return self._keeping.message

    @property
    def ground(self) -> Ground:
        """What all lines depend on, as it was seen last."""
        with self.lock:
            return self._core.ground()

    def card(self) -> Card:
        """The project in brief."""
        with self.lock:
            document, at_s = self.document, self._core.history.marks.at_s
            audio_s = self._core.lines.audio_s(document)
            return Card(self.project_id, document.name, at_s, len(document.order), audio_s)

    def view(self, line_id: str) -> LineView | None:
        """A line as it is now; None when it was deleted."""
        with self.lock:
            line = self.document.lines.get(line_id)
            if line is None:
                return None
            return self._core.lines.view(line, self.document, self._core.ground())

    def views(self) -> list[LineView]:
        """All lines in order."""
        with self.lock:
            self._look_around()
            document, ground = self.document, self._core.ground()
            return [self._core.lines.view(line, document, ground) for line in document]

    def takes(self, line_id: str) -> list[Take]:
        """A line's takes, the oldest first."""
        with self.lock:
            return self._core.lines.takes(line_id, self.document)

    def doubts(self, take: Take) -> tuple[Doubt, ...]:
        """What may not be right about a take."""
        with self.lock:
            return self._core.lines.company.doubts(take)

    def making(self, line_id: str) -> Making | None:
        """A line on its way; None when nobody makes it now."""
        with self.lock:
            return self._core.making.get(line_id)

    def colours(self) -> list[str]:
        """The colours that the library's speakers have."""
        return [speaker.colour for speaker in self._core.tools.library.list()]

    def script(self) -> tuple[int, str, tuple[Notice, ...]]:
        """The revision, its lines as a script, and what the voices would make of it.

        Raises:
            StorageFailed: The library of voices can't be read.
        """
        with self.lock:
            rev, text = self.rev, write_script(self.document.dialog())
            return rev, text, self._noticed(read_dialog_text(text) if text else None)

    def edit(self, edits: Sequence[Op], author: Author, base_rev: int) -> EditNews:
        """Apply edits, as `Revising.edit`."""
        with self._working():
            return self._revising.edit(edits, author, base_rev)

    def lay_script(
        self, text: str, author: Author, base_rev: int
    ) -> tuple[EditNews, tuple[Notice, ...]]:
        """Let the lines be those of a script; those that stay keep their takes.

        Raises:
            ScriptError: It can't be read; nothing changed then.
            EditConflict: Others changed the project since `base_rev`.
            StorageFailed: It can't be kept; nothing changed then.
        """
        parsed = read_dialog_text(text)
        with self._working():
            news = self._revising.lay(parsed.dialog, author, base_rev)
            return news, self._noticed(parsed)

    def _noticed(self, parsed: ParsedScript | None) -> tuple[Notice, ...]:
        if parsed is None:
            return ()
        told = self._core.surroundings.notices(self.document, parsed.dialog)
        return parsed.notices + told

    def rename(self, name: str) -> EditNews:
        """Give the project another name, as `Revising.rename`."""
        with self._working():
            return self._revising.rename(name)

    def undo(self, author: Author, base_rev: int, *, own: bool = False) -> EditNews:
        """Take the latest step back, as `Revising.undo`."""
        with self._working():
            return self._revising.undo(author, base_rev, own=own)

    def redo(self, author: Author) -> EditNews:
        """Take the latest undo back, as `Revising.redo`."""
        with self._working():
            return self._revising.redo(author)

    def render(
        self, line_ids: Iterable[str] | None, *, again: bool = False, listen_from: str | None = None
    ) -> None:
        """Make lines, as `Renders.want`.

        Args:
            line_ids: None for all.
            again: Make a further take of these lines, with a new seed.
            listen_from: Where somebody listens.
        """
        with self._working():
            self._look_around()
            self._renders.want(line_ids, again=again, listen_from=listen_from)

    def resume(self) -> None:
        """Go on with what a render had left to do when the studio ended."""
        with self.lock:
            self._renders.resume()

    def cancel(self) -> None:
        """Stop the render, as `Renders.cancel`."""
        with self.lock:
            self._renders.cancel()

    def focus(self, line_id: str) -> None:
        """Somebody listens there, as `Renders.focus`."""
        with self._working():
            self._renders.focus(line_id)

    def moment(self) -> Moment:
        """Its files as they are now, to be packed or copied while others go on working.

        Raises:
            StorageFailed: They can't be read.
        """
        self.tidy(now=True)
        root = self.folder.root
        with self.lock, storage_errors(root):
            # The journal may be ahead of the snapshot, never behind it.
            snapshot = (root / places.SNAPSHOT).read_bytes()
            return Moment(root, snapshot, self._core.journal.size_bytes, self.document)

    def voice_packs(self) -> Iterator[tuple[str, IO[bytes]]]:
        """The voices of its cast, as `packs`."""
        return packs(self.document, self._core.tools.library)

    def take_voices(self, folder: Path) -> None:
        """Bring the voices that came with it into the library, and let its cast have them.

        Raises:
            StorageFailed: They can't be kept.
        """
        cast, told = brought_in(folder, self.document, self._core.tools.library)
        with self._working():
            self._core.record(replace(self.document, cast=cast), STUDIO, Kind.MADE)
            self.folder.notices += told
            self._look_around()

    def add_audio(self, name: str, file: BinaryIO) -> str:
        """Bring a recording into the project; returns the path that audio lines name it by.

        Raises:
            BadInput: No file can have that name.
            AudioRejected: It can't be decoded or is too large; nothing is kept then.
            StorageFailed: It can't be written.
        """
        with self._working():
            pass
        # Without the lock: a file of that very content is the same whoever brings it.
        return bring_audio(self.folder, name, file)

    def free_recordings(self) -> Held:
        """Free the recordings that no line plays.

        Raises:
            StorageFailed: The disk doesn't know of the latest edit, or a file can't be removed.
        """
        with self._working():
            self._keeping.sync()
            found = unused(self.folder.root / places.AUDIO, self.document)
            held = sizes_of(found)
            for path in found:
                self.folder.disk.remove(path)
            return held

    def free(self) -> Held:
        """Free the audio of what was deleted; its records stay, for undo.

        Raises:
            StorageFailed: The disk doesn't know of the latest deletion, or a file can't be removed.
        """
        with self._working():
            self._keeping.sync()
            return free_unheard(self.shelf, self.document)

    def tidy(self, *, now: bool = False) -> None:
        """Bring to the disk what isn't there yet, and see whether voices changed.

        Args:
            now: The snapshot too, however young the last one is.
        """
        with self.lock:
            if self._core.closed:
                return
            chore = self._keeping.chore(now=now)
            is_time = time.monotonic() - self._core.surroundings.seen_s > _LOOK_EVERY_S
            if self.news.followers and is_time:
                self._look_around()
        # Without the lock: nobody who types waits for the disk.
        self._keeping.do(chore)

    def close(self) -> None:
        """Keep everything and let go of the folder; what was wanted is gone on with later."""
        with self.lock:
            if self._core.closed:
                return
            self._keeping.do(self._keeping.chore(now=True))
            self._core.closed = True
            for line_id in list(self._core.wanted):
                self._renders.rendering.drop(line_id)
            self._keeping.close()
            self.folder.close()
            self.news.close()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Hold the lock for a change.

        Raises:
            EngineBusy: The project was closed since it was asked for.
        """
        with self.lock:
            if self._core.closed:
                raise put_away()
            yield

    def _look_around(self) -> None:
        """See which voices there are now; tells of lines that changed by that."""
        former, ground = self._core.surroundings.look(self.document)
        if former is None or former is ground:
            return
        changed = [line.line_id for line in self.document if not former.agrees(ground, line)]
        self._renders.recheck(changed)
        for line_id in changed:
            self.news.post(LineNews(line_id))
