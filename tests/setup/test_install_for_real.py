"""The launcher with the real pip and a real environment, on packages of a few hundred bytes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tiny_index import TinyRepo

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="it signals processes as POSIX does"),
]

_FAKE_PYTEST = """
import json, os, sys
print(json.dumps([sys.argv[1:], os.getcwd(), os.environ["TABLEREAD_BROWSER"]]))
sys.exit(5)
"""

ASKED = {"TABLEREAD_INSTALL_MODELS": "true"}
"""What a person does who has no card and wants the large models."""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[TinyRepo, subprocess.CompletedProcess[str]]:
    """A repository after its first launch, which met an environment whose Python is gone."""
    repo = TinyRepo.make(tmp_path_factory.mktemp("tiny"))
    repo.add_wheel("tiny_base", "1.0")
    repo.add_wheel("tiny_first", requires=("tiny_base",))
    repo.require("tiny_first==1.0")
    (repo.venv / "bin").mkdir(parents=True)
    (repo.venv / "pyvenv.cfg").write_text("version = 3.11.1\n")
    (repo.venv / "bin" / "python").symlink_to(repo.root / "removed")
    done = repo.launch("render", "a.txt", "tiny_base", "--seven")
    return repo, done


@pytest.fixture
def repo(made) -> TinyRepo:
    tiny, _ = made
    tiny.require("tiny_first==1.0")
    return tiny


def _answer(done: subprocess.CompletedProcess[str]) -> dict:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def _wait_for(path: Path) -> None:
    end_s = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end_s, f"{path} never came"
        time.sleep(0.02)


def test_first_launch_makes_the_environment_and_hands_over(made):
    repo, done = made
    answer = _answer(done)
    assert answer["argv"] == ["render", "a.txt", "tiny_base", "--seven"]
    assert answer["imported"] == ["1.0"]
    assert Path(answer["prefix"]) == repo.venv
    assert done.returncode == 7
    assert "Set up: studio part" in done.stderr
    assert "Making the environment took" in done.stderr


def test_second_launch_installs_nothing_and_says_nothing(repo):
    log = repo.root / ".tableread" / "setup" / "studio.log"
    repo.launch("doctor")
    before = log.stat().st_mtime_ns
    done = repo.launch("doctor")
    assert done.returncode == 0
    assert done.stderr == ""
    assert log.stat().st_mtime_ns == before


def test_a_changed_version_is_installed(repo):
    repo.add_wheel("tiny_grown", "1.0")
    repo.require("tiny_first==1.0\ntiny_grown==1.0")
    assert _answer(repo.launch("doctor", "tiny_grown"))["imported"] == ["1.0"]
    repo.add_wheel("tiny_grown", "2.0")
    repo.require("tiny_first==1.0\ntiny_grown==2.0")
    assert _answer(repo.launch("doctor", "tiny_grown"))["imported"] == ["2.0"]


def test_an_older_complete_environment_is_brought_up_to_date(repo):
    for name in ("tiny_up", "tiny_neural"):
        repo.add_wheel(name, "1.0", requires=("tiny_first",))
    repo.require("tiny_first==1.0\ntiny_up==1.0", "tiny_neural==1.0")
    before = _answer(repo.launch("serve", "--wait", "tiny_up", "tiny_neural", **ASKED))
    assert (before["imported"], before["setup"]["state"]) == (["1.0", "1.0"], "ready")
    for name in ("tiny_more", "tiny_first"):
        repo.add_wheel(name, "2.0", requires=("tiny_base",))
    repo.add_wheel("tiny_up", "2.0", requires=("tiny_first>=2", "tiny_more"))
    repo.add_wheel("tiny_neural", "2.0", requires=("tiny_up>=2",))
    repo.require("tiny_first==2.0\ntiny_up==2.0", "tiny_neural==2.0")
    wanted = ("tiny_first", "tiny_up", "tiny_more", "tiny_neural")
    after = repo.launch("serve", "--wait", *wanted)
    assert _answer(after)["imported"] == ["2.0"] * 4
    assert _answer(after)["setup"]["state"] == "ready"
    assert repo.launch("serve", "--wait", *wanted).stderr == ""


def test_an_upgrade_that_cannot_be_had_leaves_the_way_back(repo):
    assert repo.launch("doctor").returncode == 0
    repo.require("tiny_first==99.0")
    assert repo.launch("doctor").returncode == 3
    repo.require("tiny_first==1.0")
    assert _answer(repo.launch("doctor", "tiny_first"))["imported"] == ["1.0"]


def test_a_package_cut_short_is_installed_again(repo):
    repo.add_wheel("tiny_torn")
    repo.require("tiny_first==1.0\ntiny_torn==1.0")
    assert repo.launch("doctor").returncode == 0
    (repo.site / "tiny_torn" / "__init__.py").write_text("")
    (repo.site / "tiny_torn-1.0.dist-info" / "INSTALLER").unlink()
    (repo.venv / "tableread-studio.json").unlink()
    assert _answer(repo.launch("doctor", "tiny_torn"))["imported"] == ["1.0"]


def test_an_environment_without_pip_is_mended_and_keeps_its_packages(repo):
    for record in repo.site.glob("pip*"):
        shutil.rmtree(record)
    done = repo.launch("doctor", "tiny_first")
    assert _answer(done)["imported"] == ["1.0"]
    assert list(repo.site.glob("pip-*.dist-info"))


def test_a_package_nowhere_to_be_had_ends_with_the_remedy_and_the_log(repo):
    repo.require("tiny_absent==1.0")
    done = repo.launch("render", "a.txt")
    log = repo.root / ".tableread" / "setup" / "studio.log"
    assert done.returncode == 3
    assert done.stdout == ""
    assert "is not offered for this system" in done.stderr
    assert str(log) in done.stderr
    assert "tiny_absent" in log.read_text()
    assert "Traceback" not in done.stderr


def test_a_package_that_isnt_the_locked_one_is_not_installed(repo):
    repo.add_wheel("tiny_planted", "1.0")
    repo.require("tiny_first==1.0\ntiny_planted==1.0")
    repo.add_wheel("tiny_planted", "1.0", main="print('Other content.')")
    done = repo.launch("doctor", "tiny_planted")
    assert done.returncode == 3
    assert "isn't the one that was locked" in done.stderr
    assert not list(repo.site.glob("tiny_planted*"))
    repo.require("tiny_first==1.0\ntiny_planted==1.0")
    assert _answer(repo.launch("doctor", "tiny_planted"))["imported"] == ["1.0"]


def test_requirements_without_their_lock_are_named_before_anything_changes(repo):
    requirements = repo.root / "requirements.txt"
    requirements.write_text(requirements.read_text().replace("tiny_first==1.0", "tiny_first==2.0"))
    done = repo.launch("doctor")
    assert done.returncode == 3
    assert "locks/refresh.py" in done.stderr


def test_models_are_installed_beside_the_studio_with_what_needs_no_deps(repo):
    repo.add_wheel("tiny_model", requires=("tiny_first",))
    repo.add_wheel("tiny_alone", requires=("tiny_first==0.1",))
    repo.require("tiny_first==1.0", "tiny_model==1.0\n# no-deps: tiny_alone==1.0")
    for mark in repo.venv.glob("tableread-models.*"):
        mark.unlink()  # of the tests before
    assert _answer(repo.launch("serve"))["setup"]["state"] == "missing", "nobody asked"
    answer = _answer(repo.launch("serve", "--wait", "tiny_model", "tiny_alone", **ASKED))
    assert answer["setup"]["state"] == "ready"
    assert answer["setup"]["fraction"] == 1.0
    assert answer["imported"] == ["1.0", "1.0"]
    again = repo.launch("serve")
    assert _answer(again)["setup"]["state"] == "ready"
    assert again.stderr == ""


def test_models_never_change_a_package_of_the_studio(repo):
    repo.add_wheel("tiny_base", "2.0")
    repo.add_wheel("tiny_greedy", requires=("tiny_base>=2",))
    repo.require("tiny_first==1.0", "tiny_greedy==1.0")
    done = repo.launch("serve", "--wait", "tiny_base", **ASKED)
    answer = _answer(done)
    assert done.returncode == 0
    assert answer["imported"] == ["1.0"]
    assert answer["setup"]["state"] == "failed"
    assert "contradict" in answer["setup"]["message"]
    assert "models.log" in answer["setup"]["detail"]


def test_rendering_with_a_neural_voice_ends_when_it_cannot_be_installed(repo):
    repo.require("tiny_first==1.0", "tiny_absent==1.0")
    assert repo.launch("render", "a.txt", "--backend", "chatterbox").returncode == 3
    draft = repo.launch("render", "a.txt", "--backend", "draft")
    assert draft.returncode == 0
    assert _answer(draft)["setup"]["state"] == "missing"


@pytest.mark.parametrize(
    "forbidden", [("--no-models", {}), ("", {"TABLEREAD_INSTALL_MODELS": "false"})]
)
def test_models_stay_away_when_told_to(repo, forbidden):
    option, environ = forbidden
    repo.require("tiny_first==1.0", "tiny_unwanted==1.0")
    done = repo.launch("serve", *filter(None, [option]), **environ)
    assert _answer(done)["setup"]["state"] == "skipped"


def test_too_little_disk_space_skips_the_models(repo):
    repo.require("tiny_first==1.0", "# disk: 900000000 MB\ntiny_huge==1.0")
    done = repo.launch("serve", "--wait", **ASKED)
    setup = _answer(done)["setup"]
    assert done.returncode == 0
    assert setup["state"] == "skipped"
    assert "900,000,000 MB" in setup["message"]


def test_closing_the_studio_ends_the_installation_and_the_next_start_resumes_it(repo):
    signals = repo.add_slow("tiny_long")
    repo.require("tiny_first==1.0", "tiny_long==1.0")
    done = repo.launch("serve", **ASKED)
    assert done.returncode == 0
    assert not (repo.venv / "tableread-models.json").exists()
    (signals / "go").touch()
    assert _answer(repo.launch("serve", "--wait", "tiny_long"))["imported"] == ["1.0"]


def test_a_killed_launch_leaves_no_second_pip_beside_the_first(repo):
    signals = repo.add_slow("tiny_slow")
    repo.require("tiny_first==1.0\ntiny_slow==1.0")
    killed = subprocess.Popen(
        repo.command("doctor"),
        env=repo.environ(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for(signals / "began")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    following = subprocess.Popen(
        repo.command("doctor", "tiny_slow"),
        env=repo.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stderr is not None
    first_words = following.stderr.readline()
    (signals / "go").touch()
    out, _ = following.communicate(timeout=60)
    assert "Waiting for another start" in first_words
    assert json.loads(out)["imported"] == ["1.0"]


def test_two_launches_at_once_both_arrive(repo):
    repo.add_wheel("tiny_shared")
    repo.require("tiny_first==1.0\ntiny_shared==1.0")
    both = [
        subprocess.Popen(
            repo.command("doctor", "tiny_shared"),
            env=repo.environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in both]
    assert [answer["imported"] for answer in answers] == [["1.0"], ["1.0"]]


def test_the_test_command_brings_its_tools_and_hands_on_arguments_and_status(repo):
    repo.add_wheel("pytest", "0.0.1", main=_FAKE_PYTEST)
    repo.require("tiny_first==1.0", tests="pytest==0.0.1")
    browser = repo.index / "browser"
    browser.touch()
    done = repo.launch("test", "-k", "dialog", TABLEREAD_BROWSER=str(browser))
    assert json.loads(done.stdout) == [["-k", "dialog"], str(repo.root), str(browser)]
    assert done.returncode == 5
    assert "tests part" in done.stderr
    whole = repo.launch("test", TABLEREAD_BROWSER=str(browser))
    assert json.loads(whole.stdout)[0] == ["-n", "2", "--dist", "loadfile"]


def test_a_space_installs_into_the_environment_it_runs_in(repo, tmp_path):
    space = TinyRepo.make(tmp_path)
    for name in ("tiny_first", "tiny_base", "tiny_space"):
        space.add_wheel(name)
    space.require("tiny_first==1.0\ntiny_space==1.0")
    done = subprocess.run(
        [str(repo.venv / "bin" / "python"), str(space.root / "launch.py"), "doctor", "tiny_space"],
        env=space.environ(SPACE_ID="someone/studio"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    answer = _answer(done)
    assert Path(answer["prefix"]) == repo.venv
    assert answer["imported"] == ["1.0"]
    assert not space.venv.exists()
