"""Disk space that a workspace's projects could give back, and how it is reclaimed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from studio.errors import StudioError
from studio.project import folder as layout
from studio.project.audio_files import find_unused_audio
from studio.project.projects import Projects
from studio.project.takes import measure_unused_takes
from studio.storage.disk import DiskUsage, measure_files


@dataclass(frozen=True, slots=True)
class ReclaimableProject:
    """What one project holds in vain."""

    project_id: str
    name: str
    takes: DiskUsage
    recordings: DiskUsage = field(default_factory=DiskUsage)

    @property
    def all(self) -> DiskUsage:
        """Both together."""
        return self.takes + self.recordings


@dataclass(frozen=True, slots=True)
class ReclaimableSpace:
    """What is held in vain, or was freed.

    Attributes:
        projects: Those that hold anything, the one that holds most first.
        trash: Removed projects.
        left: Why a project's share could not be freed, by its id.
    """

    projects: tuple[ReclaimableProject, ...] = ()
    trash: DiskUsage = field(default_factory=DiskUsage)
    left: tuple[tuple[str, str], ...] = ()

    @property
    def takes(self) -> DiskUsage:
        """What the takes of all projects hold."""
        return sum((one.takes for one in self.projects), DiskUsage())

    @property
    def recordings(self) -> DiskUsage:
        """What recordings that no line plays hold in all projects."""
        return sum((one.recordings for one in self.projects), DiskUsage())


def find_reclaimable(projects: Projects) -> ReclaimableSpace:
    """What could be freed; looks at names and sizes of files, and opens no project."""
    found = [
        ReclaimableProject(
            root.name,
            document.name,
            measure_unused_takes(root / layout.TAKES_FOLDER, document),
            measure_files(find_unused_audio(root / layout.AUDIO_FOLDER, document)),
        )
        for root, document in projects.documents()
    ]
    return ReclaimableSpace(_rank_projects(found), projects.trash.held())


def reclaim_space(
    projects: Projects, project_ids: Collection[str] | None = None, *, trash: bool = True
) -> ReclaimableSpace:
    """Free what is held in vain; returns what was freed, and what could not be.

    Args:
        projects: All projects of a workspace.
        project_ids: Whose takes; None for those of all projects.
        trash: Whether removed projects are deleted for good, too.

    Raises:
        StorageFailed: The trash can't be emptied.
    """
    emptied = projects.trash.empty() if trash else DiskUsage()
    freed: list[ReclaimableProject] = []
    left: list[tuple[str, str]] = []
    for one in find_reclaimable(projects).projects:
        if project_ids is not None and one.project_id not in project_ids:
            continue
        try:
            session = projects.open(one.project_id)
            takes, recordings = session.free(), session.free_recordings()
            freed.append(
                ReclaimableProject(one.project_id, session.document.name, takes, recordings)
            )
        except StudioError as error:
            left.append((one.project_id, str(error)))
    return ReclaimableSpace(_rank_projects(freed), emptied, tuple(left))


def _rank_projects(holdings: list[ReclaimableProject]) -> tuple[ReclaimableProject, ...]:
    holding = [one for one in holdings if one.all.count]
    return tuple(sorted(holding, key=lambda one: one.all.size_bytes, reverse=True))
