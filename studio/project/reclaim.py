"""Finds and reclaims the disk space that a workspace's projects don't need."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from studio.errors import StudioError
from studio.project.project_lists import ReclaimableProject
from studio.project.projects import Projects
from studio.storage.disk import DiskUsage


@dataclass(frozen=True, slots=True)
class ReclaimableSpace:
    """The files that can be reclaimed, or have been.

    Attributes:
        projects: Those with such files, the one with the most bytes first.
        trash: Removed projects.
        failures: Why a project's files couldn't be deleted, by its id.
    """

    projects: tuple[ReclaimableProject, ...] = ()
    trash: DiskUsage = field(default_factory=DiskUsage)
    failures: tuple[tuple[str, str], ...] = ()

    @property
    def takes(self) -> DiskUsage:
        return sum((one.takes for one in self.projects), DiskUsage())

    @property
    def recordings(self) -> DiskUsage:
        return sum((one.recordings for one in self.projects), DiskUsage())


def find_reclaimable(projects: Projects) -> ReclaimableSpace:
    """Find what can be reclaimed; looks at names and sizes of files, and opens no project."""
    found = projects.list_reclaimable()
    return ReclaimableSpace(_rank_projects(found), projects.trash.measure())


def reclaim_space(
    projects: Projects, project_ids: Collection[str] | None = None, *, trash: bool = True
) -> ReclaimableSpace:
    """Delete reclaimable files; returns what was deleted, and what couldn't be.

    Args:
        projects: All projects of a workspace.
        project_ids: Projects whose takes are deleted; None for all.
        trash: Whether removed projects are deleted for good, too.
    """
    emptied = projects.trash.empty() if trash else DiskUsage()
    freed: list[ReclaimableProject] = []
    left: list[tuple[str, str]] = []
    for one in find_reclaimable(projects).projects:
        if project_ids is not None and one.project_id not in project_ids:
            continue
        try:
            session = projects.open(one.project_id)
            takes, recorded = session.free_unused_takes()
            recordings = recorded + session.free_unused_audio()
            freed.append(
                ReclaimableProject(one.project_id, session.document.name, takes, recordings)
            )
        except StudioError as error:
            left.append((one.project_id, str(error)))
    return ReclaimableSpace(_rank_projects(freed), emptied, tuple(left))


def _rank_projects(holdings: list[ReclaimableProject]) -> tuple[ReclaimableProject, ...]:
    holding = [one for one in holdings if one.total.count]
    return tuple(sorted(holding, key=lambda one: one.total.size_bytes, reverse=True))
