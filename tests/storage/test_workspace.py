"""The workspace's folder."""

import stat

from studio.storage.workspace import ensure_writable


def test_a_workspace_is_for_its_user_only(tmp_path):
    made = ensure_writable(tmp_path / "new")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    (tmp_path / "old" / "projects").mkdir(parents=True)
    (tmp_path / "old").chmod(0o755)
    assert stat.S_IMODE(ensure_writable(tmp_path / "old").stat().st_mode) == 0o700
    (tmp_path / "documents").mkdir(mode=0o755)
    (tmp_path / "documents").chmod(0o755)
    assert stat.S_IMODE(ensure_writable(tmp_path / "documents").stat().st_mode) == 0o755
