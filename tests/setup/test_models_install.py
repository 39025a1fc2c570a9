from __future__ import annotations

import threading
from pathlib import Path

import pytest

from studio.errors import Cancelled, SetupFailed
from studio.setup.installer import Home, Installer, NoSpace
from studio.setup.models_install import ModelsInstall, SetupReport
from studio.setup.pip import InstallProgress
from studio.setup.requirements import Part, Pin


class Scripted:
    """An installer whose end the test decides: an error, or success."""

    def __init__(self, ends: list[Exception | None], *, ready: bool = False) -> None:
        self.ends = ends
        self.ready = ready
        self.began = threading.Event()
        self.go = threading.Event()
        self.stopped = False
        self.runs = 0
        self.download_bytes = 2_900_000_000

    def is_ready(self) -> bool:
        return self.ready

    def run(self, report) -> None:
        self.runs += 1
        report(InstallProgress("Downloading the model packages.", 0.25, "torch"))
        self.began.set()
        assert self.go.wait(30)
        if self.stopped:
            raise Cancelled("It was stopped.")
        end = self.ends.pop(0)
        if end is not None:
            raise end

    def stop(self) -> None:
        self.stopped = True
        self.go.set()


def _install(
    *ends: Exception | None, held: bool = False, **options
) -> tuple[ModelsInstall, Scripted]:
    scripted = Scripted(list(ends))
    if not held:
        scripted.go.set()
    return ModelsInstall(lambda: scripted, **options), scripted


def test_it_is_what_the_studio_takes():
    install, _ = _install()
    report: SetupReport = install
    assert set(report.snapshot()) == {
        "state",
        "message",
        "fraction",
        "detail",
        "download_bytes",
    }


def test_nothing_begins_by_itself():
    install, scripted = _install()
    assert install.snapshot()["state"] == "missing"
    assert install.wait(0) is False
    assert scripted.runs == 0


def test_installed_packages_are_ready_at_once_and_start_does_nothing():
    scripted = Scripted([], ready=True)
    install = ModelsInstall(lambda: scripted)
    install.start()
    assert install.snapshot()["state"] == "ready"
    assert install.wait()
    assert scripted.runs == 0


def test_a_forbidden_installation_is_skipped_until_someone_asks():
    install, _ = _install(None, allowed=False)
    assert install.snapshot()["state"] == "skipped"
    install.start()
    assert install.wait()


def test_progress_is_seen_while_it_runs_and_a_second_start_changes_nothing():
    steps = []
    install, scripted = _install(None, held=True, listener=steps.append)
    install.start()
    assert scripted.began.wait(30)
    install.start()
    assert install.snapshot() == {
        "state": "installing",
        "message": "Downloading the model packages.",
        "fraction": 0.25,
        "detail": "torch",
        "download_bytes": 2_900_000_000,
    }
    assert install.wait(0) is False
    scripted.go.set()
    assert install.wait()
    assert scripted.runs == 1
    assert [step.fraction for step in steps] == [0.25, 1.0]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (SetupFailed("The index can't be reached: check the network.\n  last lines"), "failed"),
        (OSError("read-only file system"), "failed"),
        (NoSpace("It needs 8,000 MB."), "skipped"),
        (Cancelled("It was stopped."), "missing"),
    ],
)
def test_an_end_without_success_says_why_and_can_be_tried_again(error, state):
    install, _ = _install(error, None)
    install.start()
    assert not install.wait()
    snapshot = install.snapshot()
    assert snapshot["state"] == state
    assert str(error).partition("\n")[0] in snapshot["message"]
    assert "\n" not in snapshot["message"]
    install.start()
    assert install.wait()
    assert install.snapshot()["state"] == "ready"


def test_close_stops_a_running_installation_and_refuses_new_ones():
    install, scripted = _install(None, held=True)
    install.start()
    assert scripted.began.wait(30)
    install.close()
    assert install.snapshot()["state"] == "missing"
    install.start()
    assert scripted.runs == 1


def test_close_is_harmless_when_nothing_runs():
    install, scripted = _install()
    install.close()
    assert not scripted.stopped


def test_a_foreign_environment_with_the_packages_needs_no_stamp(tmp_path):
    here = Part("models", (Pin("pytest", pytest.__version__),))
    absent = Part("models", (Pin("pytest", "0.0"),))
    foreign = Home(tmp_path, tmp_path, locks=tmp_path, owned=False)
    assert Installer(foreign, here).is_ready()
    assert not Installer(foreign, absent).is_ready()
    assert not Installer(Home(tmp_path, tmp_path, locks=tmp_path, owned=True), here).is_ready()


def absent_part(locks: Path) -> Part:
    """A part with its lock, whose package nobody has."""
    (locks / "models.txt").write_text(f"no-such-package-anywhere==1 --hash=sha256:{'0' * 64}\n")
    return Part("models", (Pin("no-such-package-anywhere", "1"),))


def test_an_installer_stopped_before_it_began_touches_nothing(tmp_path):
    part = absent_part(tmp_path)
    installer = Installer(Home(tmp_path, tmp_path / "state", owned=False, locks=tmp_path), part)
    installer.stop()
    with pytest.raises(Cancelled):
        installer.run(lambda _: None)
    assert list(tmp_path.glob("*.json")) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "state").write_text("a file where the folder should be")
    part = absent_part(tmp_path)
    installer = Installer(Home(tmp_path, tmp_path / "state", owned=False, locks=tmp_path), part)
    with pytest.raises(SetupFailed, match=r"can't be changed.*Check who owns"):
        installer.run(lambda _: None)


def test_a_stopped_installation_can_be_begun_again():
    install, scripted = _install(None, held=True)
    install.stop()  # nothing runs yet
    install.start()
    assert scripted.began.wait(30)
    install.stop()
    assert install.wait(30) is False
    assert install.snapshot()["state"] == "missing"
    scripted.stopped = False
    install.start()
    assert install.wait(30)
