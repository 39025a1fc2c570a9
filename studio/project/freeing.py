"""Room on the disk: what a workspace's projects hold in vain, and how to get it back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from studio.errors import StudioError
from studio.project import folder as places
from studio.project.projects import Projects
from studio.project.space import Held, sizes_of, unheard, unused


@dataclass(frozen=True, slots=True)
class Holding:
    """What one project holds in vain."""

    project_id: str
    name: str
    takes: Held
    recordings: Held = field(default_factory=Held)

    @property
    def all(self) -> Held:
        """Both together."""
        return self.takes + self.recordings


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is held in vain, or was freed.

    Attributes:
        projects: Those that hold anything, the one that holds most first.
        trash: Removed projects.
        left: Why a project's share could not be freed, by its id.
    """

    projects: tuple[Holding, ...] = ()
    trash: Held = field(default_factory=Held)
    left: tuple[tuple[str, str], ...] = ()

    @property
    def takes(self) -> Held:
        """What the takes of all projects hold."""
        return sum((one.takes for one in self.projects), Held())

    @property
    def recordings(self) -> Held:
        """What recordings that no line plays hold in all projects."""
        return sum((one.recordings for one in self.projects), Held())


def held_in_vain(projects: Projects) -> Holdings:
    """What could be freed; looks at names and sizes of files, and opens no project."""
    found = [
        Holding(
            root.name,
            document.name,
            unheard(root / places.TAKES, document),
            sizes_of(unused(root / places.AUDIO, document)),
        )
        for root, document in projects.documents()
    ]
    return Holdings(_ranked(found), projects.trash.held())


def free(
    projects: Projects, project_ids: Collection[str] | None = None, *, trash: bool = True
) -> Holdings:
    """Free what is held in vain; returns what was freed, and what could not be.

    Args:
        projects: All projects of a workspace.
        project_ids: Whose takes; None for those of all projects.
        trash: Whether removed projects are deleted for good, too.

    Raises:
        StorageFailed: The trash can't be emptied.
    """
    emptied = projects.trash.empty() if trash else Held()
    freed: list[Holding] = []
    left: list[tuple[str, str]] = []
    for one in held_in_vain(projects).projects:
        if project_ids is not None and one.project_id not in project_ids:
            continue
        try:
            session = projects.open(one.project_id)
            takes, recordings = session.free(), session.free_recordings()
            freed.append(Holding(one.project_id, session.document.name, takes, recordings))
        except StudioError as error:
            left.append((one.project_id, str(error)))
    return Holdings(_ranked(freed), emptied, tuple(left))


def _ranked(holdings: list[Holding]) -> tuple[Holding, ...]:
    holding = [one for one in holdings if one.all.count]
    return tuple(sorted(holding, key=lambda one: one.all.size_bytes, reverse=True))
