"""The list of review links on disk: damaged, newer, and of two studios on one workspace."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from filelock import FileLock

from studio.errors import Conflict, FileDamaged, FormatNewer, NotFound
from studio.services.studio import Studio
from studio.sharing.reviews import ReviewLinks


def list_of(studio: Studio) -> Path:
    return studio.options.workspace / "reviews.json"


def test_two_studios_see_and_keep_each_others_links(studio: Studio) -> None:
    project_id = studio.projects.create("Scene").project_id
    one, other = ReviewLinks(studio), ReviewLinks(studio)
    first, first_token = one.create(project_id)
    second, second_token = other.create(project_id)
    one.use(first_token)
    other.use(second_token)
    assert other.use(first_token).review_id == first.review_id
    assert [link.review_id for link in one.list_for(project_id)] == [
        first.review_id, second.review_id,
    ]  # fmt: skip
    other.end(project_id, first.review_id)
    assert not one.is_open(first)
    with pytest.raises(NotFound):
        one.use(first_token)
    (left,) = ReviewLinks(studio).list_for(project_id)
    assert left.review_id == second.review_id
    assert left.used_at_s is not None


def test_a_flipped_bit_ends_no_review_link(studio: Studio) -> None:
    project_id = studio.projects.create("Scene").project_id
    _, token = ReviewLinks(studio).create(project_id)
    whole = list_of(studio).read_bytes()
    for place in random.Random(5).sample(range(8 * len(whole)), 40):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        list_of(studio).write_bytes(damaged)
        assert len(ReviewLinks(studio).list_for(project_id)) == 1
        assert ReviewLinks(studio).use(token)


def test_a_damaged_list_is_kept_and_said_once(studio: Studio) -> None:
    project_id = studio.projects.create("Scene").project_id
    _, token = ReviewLinks(studio).create(project_id)
    data = list_of(studio).read_bytes()
    list_of(studio).write_bytes(data.replace(b"digest", b"digits"))
    links = ReviewLinks(studio)
    with pytest.raises(NotFound):
        links.use(token)
    with pytest.raises(FileDamaged, match=r"reviews\.json was damaged, so review links have ended"):
        links.list_for(project_id)
    assert links.list_for(project_id) == []
    links.create(project_id)
    (kept,) = studio.options.workspace.glob("reviews.damaged-*.json")
    assert b"digits" in kept.read_bytes()
    assert len(ReviewLinks(studio).list_for(project_id)) == 1


def test_a_list_that_another_studio_holds_is_a_conflict_and_stops_no_listening(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_id = studio.projects.create("Scene").project_id
    monkeypatch.setattr("studio.sharing.reviews._LOCK_TIMEOUT_S", 0.0)
    links = ReviewLinks(studio)
    link, token = links.create(project_id)
    with FileLock(f"{list_of(studio)}.lock"):
        for change in (
            lambda: links.create(project_id),
            lambda: links.end(project_id, link.review_id),
        ):
            with pytest.raises(Conflict, match="Another studio holds the list"):
                change()
        assert links.use(token).review_id == link.review_id
    links.end(project_id, link.review_id)


def test_the_first_lists_are_read(studio: Studio) -> None:
    list_of(studio).write_text(
        '{\n "sum": "3621f2a6",\n "version": 1,\n "links": [\n  {\n'
        '   "review_id": "0123456789ab",\n   "project_id": "abc",\n'
        '   "digest": "%s",\n   "made_at_s": 5.0,\n   "used_at_s": null\n'
        "  }\n ]\n}\n" % (64 * "0"),
        "utf-8",
    )
    (link,) = ReviewLinks(studio).list_for("abc")
    assert (link.review_id, link.made_at_s, link.used_at_s) == ("0123456789ab", 5.0, None)


def test_a_folder_in_the_place_of_the_list_is_said_and_makes_room(studio: Studio) -> None:
    project_id = studio.projects.create("Scene").project_id
    list_of(studio).mkdir()
    links = ReviewLinks(studio)
    with pytest.raises(FileDamaged, match=r"reviews\.json was damaged, so review links have ended"):
        links.list_for(project_id)
    links.create(project_id)
    assert len(ReviewLinks(studio).list_for(project_id)) == 1


def test_a_newer_list_is_refused_and_not_touched(studio: Studio) -> None:
    project_id = studio.projects.create("Scene").project_id
    newer = json.dumps({"version": 9, "links": [{"more": 1}]}).encode()
    list_of(studio).write_bytes(newer)
    links = ReviewLinks(studio)
    with pytest.raises(FormatNewer, match="newer studio"):
        links.list_for(project_id)
    with pytest.raises(FormatNewer, match="newer studio"):
        links.create(project_id)
    with pytest.raises(NotFound):
        links.use("any")
    assert list_of(studio).read_bytes() == newer
