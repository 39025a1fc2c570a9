from __future__ import annotations

from pathlib import Path

import pytest

from studio.errors import SetupFailed
from studio.setup.environment import ensure_venv, forget_half_installed, uses_running

REPO = Path("/srv/tableread")
OTHER = Path("/opt/conda")


@pytest.mark.parametrize(
    ("prefix", "environ", "complete", "running"),
    [
        (REPO / ".venv", {}, False, True),
        (OTHER, {}, True, True),
        (OTHER, {}, False, False),
        (OTHER, {"SPACE_ID": "someone/studio"}, False, True),
        (OTHER, {"SPACE_ID": ""}, False, False),
        (Path("/srv/other/.venv"), {}, False, False),
    ],
)
def test_where_the_studio_runs(prefix, environ, complete, running):
    assert uses_running(REPO, prefix, environ, complete=lambda: complete) is running


def test_its_own_environment_is_known_without_a_look_at_packages():
    def look() -> bool:
        raise AssertionError("no need")

    assert uses_running(REPO, REPO / ".venv", {}, complete=look)


def test_an_environment_that_cannot_be_made_names_the_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupFailed, match=r"can't be made.*Check that its folder"):
        ensure_venv(tmp_path / "file" / ".venv")


def test_only_records_that_were_cut_short_are_dropped(tmp_path):
    for name, whole in (("good-1.0", True), ("torn-2.0", False)):
        record = tmp_path / f"{name}.dist-info"
        record.mkdir()
        (record / "METADATA").write_text("")
        if whole:
            (record / "INSTALLER").write_text("pip\n")
    assert forget_half_installed(tmp_path) == ["torn-2.0.dist-info"]
    assert [path.name for path in tmp_path.iterdir()] == ["good-1.0.dist-info"]
