"""The container's files and the hosted workflow: what can be known of them without running them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from studio.cli.arguments import build_parser
from studio.settings import Settings
from studio.setup.commands import read_request
from studio.setup.requirements import read_parts

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VARIABLES = {field.validation_alias for field in Settings.model_fields.values()}
OF_OTHERS = {"HF_HOME", "HF_TOKEN", "PKUSEG_HOME"}
"""Read by the hub library and by Chatterbox's word list, see docs/operate/configuration.md."""
PIPS = {"PIP_NO_CACHE_DIR", "PIP_DISABLE_PIP_VERSION_CHECK", "PYTHONDONTWRITEBYTECODE"}


def instructions() -> list[tuple[str, str]]:
    """Every instruction of the Dockerfile with what follows it, on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines) if name]


def arguments_of(name: str) -> list[str]:
    return [rest for one, rest in instructions() if one == name]


def test_every_stage_begins_with_a_pinned_image_or_another_stage() -> None:
    stages, devices = set(), {"none", "cpu", "cuda"}
    for line in arguments_of("FROM"):
        image, _, name = line.partition(" AS ")
        if image == "packages-${DEVICE}":
            assert {f"packages-{device}" for device in devices} <= stages
        else:
            assert image in stages or re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+-[\w-]+", image)
        stages.add(name)
    assert arguments_of("ARG") == ["DEVICE=none"]
    assert "python:3.11." in arguments_of("FROM")[0], "the version that the whole suite runs on"


def test_the_container_runs_as_a_user_that_owns_what_it_writes() -> None:
    (user,) = arguments_of("USER")
    made = " ".join(arguments_of("RUN"))
    assert user == "1000"  # by number, or `runAsNonRoot` refuses it
    assert f"--uid {user} tableread" in made
    assert f"chown tableread {arguments_of('VOLUME')[0]}" in made
    folders = [value for name, value in variables() if name not in PIPS]
    assert all(folder.startswith("/data/") for folder in folders)


def variables() -> list[tuple[str, str]]:
    pairs = [pair.partition("=") for line in arguments_of("ENV") for pair in shlex.split(line)]
    return [(name, value) for name, _, value in pairs]


def test_its_variables_are_read_by_somebody() -> None:
    assert {name for name, _ in variables()} <= VARIABLES | OF_OTHERS | PIPS


def test_its_command_is_the_packages_and_serves_at_the_port_that_is_open() -> None:
    (program,) = json.loads(arguments_of("ENTRYPOINT")[0])
    assert program in PROJECT["project"]["scripts"]
    served = build_parser().parse_args(json.loads(arguments_of("CMD")[0]))
    assert (served.command, served.host, served.no_browser) == ("serve", "0.0.0.0", True)
    assert arguments_of("EXPOSE") == [str(served.port)]


def test_its_health_is_asked_for_by_code_that_can_be_read() -> None:
    (check,) = arguments_of("HEALTHCHECK")
    program, option, code = json.loads(check.partition("CMD ")[2])
    assert (program, option) == ("python", "-c")
    compile(code, "healthcheck", "exec")
    assert f":{arguments_of('EXPOSE')[0]}/healthz/live" in code


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    sent = (ROOT / ".dockerignore").read_text("utf-8").split()
    copied = [one for line in arguments_of("COPY") for one in line.split()[:-1]]
    assert "*" in sent
    for name in copied:
        assert (ROOT / name).exists()
        assert any(line == f"!{name}" or line.startswith(f"!{name}/") for line in sent)
    for line in sent:
        assert not line.startswith("!") or (ROOT / line[1:]).exists()


def test_everything_is_installed_by_its_hash_but_the_cpu_builds_of_torch() -> None:
    commands = [one for line in arguments_of("RUN") for one in line.split("&&") if "pip " in one]
    by_hash = [shlex.split(one) for one in commands if "--require-hashes" in one]
    others = [one for one in commands if "--require-hashes" not in one]
    files = [Path(word) for words in by_hash for word in words if word.endswith(".txt")]
    python = re.search(r"python:(3\.\d+)", arguments_of("FROM")[0])[1]
    assert {file.parent for file in files} == {Path("locks") / python}
    assert {file.stem for file in files} == {
        "studio",
        "models",
        "models-torch",
        "models-alone",
        "build",
    }
    for words in by_hash:
        built = any(word.endswith("-alone.txt") for word in words)
        assert {"--no-deps", "--no-build-isolation" if built else "--only-binary"} <= {*words}
    torch, wheel, own = others
    assert "--no-deps" in torch
    assert torch.endswith("-r torch.txt")
    assert {"--no-deps", "--no-build-isolation"} <= set(wheel.split())
    assert own.endswith("pip install --no-deps /wheel/*.whl")


def test_the_cpu_builds_are_the_torch_of_the_lock() -> None:
    """The Dockerfile cuts requirements.txt with sed; here it does so too."""
    version = ["sed", "--version"]
    if "GNU" not in subprocess.run(version, capture_output=True, text=True, check=False).stdout:
        pytest.skip("the container's sed is GNU's")
    (command,) = re.findall(r"sed [^>]+> torch.txt", " ".join(arguments_of("RUN")))
    *cut, _, _ = shlex.split(command)
    done = subprocess.run(cut, cwd=ROOT, capture_output=True, text=True, check=False)
    pins = read_parts(ROOT / "requirements.txt")["models"].pins
    torch = [str(pin) for pin in pins if pin.name in {"torch", "torchaudio"}]
    assert done.stdout.splitlines() == torch


@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_the_containers_packages_install_and_start(tmp_path: Path) -> None:
    """What the Dockerfile does without models, in an environment of its Python; needs an index."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "container")], check=True)
    pip = [str(tmp_path / "container" / "bin" / "pip")]
    by_hash = [
        *pip,
        "install",
        "--quiet",
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]
    locks = ROOT / "locks" / f"{sys.version_info.major}.{sys.version_info.minor}"
    for name in ("studio", "build"):
        subprocess.run([*by_hash, "-r", str(locks / f"{name}.txt")], check=True)
    built = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*built, "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    script, out = ROOT / "assets" / "dialogs" / "lighthouse.txt", tmp_path / "scene.wav"
    tableread = str(tmp_path / "container" / "bin" / "tableread")
    options = ["--backend", "draft", "--workspace", str(tmp_path / "workspace")]
    subprocess.run([tableread, "render", str(script), "-o", str(out), *options], check=True)
    assert out.stat().st_size > 100_000


@pytest.fixture(scope="module")
def services() -> dict:
    return yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]


def test_the_studio_speaks_through_the_other_service(services: dict) -> None:
    studio, speech = services["studio"], services["speech"]
    assert set(studio["environment"]) <= VARIABLES
    port = speech["command"][speech["command"].index("--port") + 1]
    assert studio["environment"]["TTS_REMOTE_URLS"] == f"http://speech:{port}"
    assert f":{port}/health" in speech["healthcheck"]["test"][-1]
    assert studio["depends_on"]["speech"]["condition"] == "service_healthy"
    assert f"FROM packages-{studio['build']['args']['DEVICE']}" in "".join(
        f"FROM {name.partition(' AS ')[2]}" for name in arguments_of("FROM")
    )


def test_only_this_machine_reaches_the_studio_and_its_image_is_pinned(services: dict) -> None:
    (port,) = arguments_of("EXPOSE")
    assert services["studio"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert "ports" not in services["speech"]
    version = re.fullmatch(r"vllm/vllm-omni:v([\d.]+)", services["speech"]["image"])[1]
    assert f"vllm-omni=={version}" in (ROOT / "docs/operate/servers.md").read_text("utf-8")


def test_volumes_of_the_services_are_declared(services: dict) -> None:
    declared = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["volumes"]
    used = [volume for service in services.values() for volume in service["volumes"]]
    assert {volume.partition(":")[0] for volume in used} == set(declared)
    assert f"studio:{arguments_of('VOLUME')[0]}" in services["studio"]["volumes"]


def audit() -> dict:
    return yaml.safe_load((ROOT / ".github/workflows/audit.yml").read_text("utf-8"))


def test_every_lock_is_audited_on_a_schedule_and_when_it_changes() -> None:
    triggers = audit()[True]  # what YAML 1.1 makes of "on"
    assert triggers["schedule"]
    assert "locks/**" in triggers["push"]["paths"]
    assert "locks/**" in triggers["pull_request"]["paths"]


def test_the_audit_looks_at_every_lock(tmp_path: Path) -> None:
    """The shell writes the list of files; here it does so too."""
    (job,) = audit()["jobs"].values()
    install, look_up = [step["run"] for step in job["steps"] if "run" in step]
    assert {"--require-hashes", "--no-deps"} <= set(install.split())
    assert {"--strict", "--require-hashes", "--disable-pip"} <= set(look_up.split())
    looked_at = set()
    for python in job["strategy"]["matrix"]["python"]:
        named = install.replace("${{ matrix.python }}", python)
        assert (ROOT / named.split()[-1]).is_file()
        command = look_up.replace("${{ matrix.python }}", python).replace("python -m", "echo")
        shown = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
        )
        looked_at |= {ROOT / word for word in shown.stdout.split() if word.endswith(".txt")}
    assert looked_at == {*ROOT.glob("locks/*.txt"), *ROOT.glob("locks/*/*.txt")}


def workflow() -> dict:
    return yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))


@pytest.mark.parametrize("name", ["audit", "ci", "nightly"])
def test_a_workflow_may_only_read_and_names_the_commits_of_its_actions(name: str) -> None:
    read = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text("utf-8"))
    assert read["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in read[True]
    for job in read["jobs"].values():
        assert "permissions" not in job
        actions = [step for step in job["steps"] if "uses" in step]
        assert [step["uses"].partition("@")[0] for step in actions] == [
            "actions/checkout",
            "actions/setup-python",
        ]
        assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in actions)
        assert actions[0]["with"] == {"persist-credentials": False}


def launches(commands: list[str]) -> list[list[str]]:
    """The launcher's command lines among some of the shell."""
    split = [shlex.split(command) for command in commands]
    return [words[2:] for words in split if len(words) > 1 and words[1] == "launch.py"]


def test_the_jobs_run_commands_that_exist() -> None:
    jobs = workflow()["jobs"]
    assert set(jobs) == {"lint", "unit", "browser", "models"}
    for job in jobs.values():
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert len(launches(commands)) == len(commands) == 1
    assert launches([jobs["unit"]["steps"][-1]["run"]]) == [["test", "--fast"]]


def test_the_marks_of_the_jobs_exist() -> None:
    known = {
        marker.partition(":")[0] for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]
    }
    for job in workflow()["jobs"].values():
        for arguments in launches([step["run"] for step in job["steps"] if "run" in step]):
            if "-m" in arguments:
                marks = set(re.findall(r"\w+", arguments[arguments.index("-m") + 1]))
                assert marks - {"and", "or", "not"} <= known


def test_the_unit_tests_run_on_every_python_that_is_taken() -> None:
    versions = workflow()["jobs"]["unit"]["strategy"]["matrix"]["python"]
    taken = [
        line.rpartition(" ")[2]
        for line in PROJECT["project"]["classifiers"]
        if re.search(r"Python :: 3\.\d+$", line)
    ]
    assert versions == taken


def test_the_own_script_runs_lint_and_the_whole_suite() -> None:
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    commands = [line.replace('"$@"', "").strip() for line in lines if line.startswith("python3")]
    assert launches(commands) == [["lint"], ["test"]]
    assert [read_request(one, {}).command for one in launches(commands)] == ["lint", "test"]
