from __future__ import annotations

import json

import pytest

from studio.setup.installer import Stamp
from studio.setup.requirements import Part, Pin

PART = Part("studio", (Pin("a", "1"),))


def test_a_stamp_holds_for_its_very_part(tmp_path):
    stamp = Stamp(tmp_path, PART)
    assert not stamp.is_current()
    stamp.write()
    assert stamp.is_current()
    assert not Stamp(tmp_path, Part("studio", (Pin("a", "2"),))).is_current()
    assert not Stamp(tmp_path, Part("models", (Pin("a", "1"),))).is_current()


def test_a_removed_stamp_is_gone_and_removing_twice_is_harmless(tmp_path):
    stamp = Stamp(tmp_path, PART)
    stamp.write()
    stamp.remove()
    stamp.remove()
    assert not stamp.is_current()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", '{"fingerprint": 3}'])
def test_a_damaged_stamp_counts_as_none(tmp_path, content):
    stamp = Stamp(tmp_path, PART)
    stamp.path.write_text(content)
    assert not stamp.is_current()


def test_a_stamp_names_its_packages_for_the_reader(tmp_path):
    stamp = Stamp(tmp_path, PART)
    stamp.write()
    assert json.loads(stamp.path.read_text())["packages"] == ["a==1"]
    assert [path.name for path in tmp_path.iterdir()] == ["tableread-studio.json"]
