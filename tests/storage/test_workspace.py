"""The workspace's folder."""

import os
import stat
import subprocess
import sys

import pytest

from studio.storage.workspace import WorkspaceUse, ensure_writable


def test_a_workspace_is_for_its_user_only(tmp_path):
    made = ensure_writable(tmp_path / "new")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    (tmp_path / "old" / "projects").mkdir(parents=True)
    (tmp_path / "old").chmod(0o755)
    assert stat.S_IMODE(ensure_writable(tmp_path / "old").stat().st_mode) == 0o700
    (tmp_path / "documents").mkdir(mode=0o755)
    (tmp_path / "documents").chmod(0o755)
    assert stat.S_IMODE(ensure_writable(tmp_path / "documents").stat().st_mode) == 0o755


def test_studios_on_one_workspace_know_of_each_other(tmp_path):
    first = WorkspaceUse(tmp_path)
    assert first.is_alone()
    second = WorkspaceUse(tmp_path)
    assert not first.is_alone()
    assert not second.is_alone()
    first.close()
    assert second.is_alone()
    second.close()


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is a thing of POSIX systems")
def test_a_studio_that_was_killed_uses_a_workspace_no_more(tmp_path):
    code = "import sys; from pathlib import Path; from studio.storage.workspace import WorkspaceUse"
    code += "; use = WorkspaceUse(Path(sys.argv[1])); print('in use', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"in use\n"
        use = WorkspaceUse(tmp_path)
        assert not use.is_alone()
        other.kill()
        other.wait()
    assert use.is_alone()
    use.close()
    assert list((tmp_path / ".studios").iterdir()) == []
