"""`bench` where packages are missing: in the environment of the first start, and installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from serving import ROOT

from studio.app import main

WITHOUT_MODELS = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "qwen_tts", "onnx"), None))
from studio.app import main
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


def bench_without_models(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = folder / "without_models.py"
    script.write_text(WITHOUT_MODELS, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script), "bench", *arguments],
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HF_HOME": str(folder / "hub")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_the_studio_costs_is_measured_without_a_model(tmp_path: Path) -> None:
    done = bench_without_models(tmp_path, "overhead", "--lines", "2", "--runs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("| lines |")


@pytest.mark.parametrize("model", ["qwen3", "turbo", "kokoro"])
def test_a_bench_of_models_names_the_package_that_lacks_and_the_way_to_it(
    tmp_path: Path, model: str
) -> None:
    done = bench_without_models(tmp_path, "engines", "--model", model)
    assert done.returncode == 2
    assert done.stderr == (
        "This benchmark needs “torch”, which isn't installed here. The packages of the large "
        "models come with TABLEREAD_INSTALL_MODELS=true python launch.py, all others with "
        "python launch.py test --fast.\n"
    )


def test_an_installed_studio_says_where_the_benchmarks_are(tmp_path: Path) -> None:
    (tmp_path / "studio").symlink_to(ROOT / "studio")
    done = subprocess.run(
        [sys.executable, "-m", "studio", "bench"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "The benchmarks are in the repository only.\n"


def test_a_part_of_the_benchmarks_that_is_missing_is_no_installed_studio(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "benchmarks.bench_options", None)
    with pytest.raises(ModuleNotFoundError, match="bench_options"):
        main(["bench"])
