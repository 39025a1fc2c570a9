"""Through how many files of the studio a request runs: `python benchmarks/trace.py [SCENARIO ...]`.

The studio serves in this process with a profile hook in every thread; while a scenario is recorded,
each file of `studio/` in which a function is called counts once, and each module of the page in
which the browser calls one. Scenarios:

    speech   POST /v1/audio/speech of one sentence, the draft voice
    space    Space pressed on a line of the page until it has been played, the draft voice
    batched  one line by Qwen3-TTS on a small random checkpoint, its model loaded before
"""

from __future__ import annotations

import argparse
import os
import runpy
import signal
import socket
import sys
import tempfile
import threading
import time
from bisect import bisect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

_STUDIO = f"{ROOT / 'studio'}{os.sep}"
_PLAYED_S = 4.0
"""A short line of the draft voice is made, fetched and played within this."""
_SEED = 1
"""With it the random checkpoint ends the sentence by itself."""

Recorded = dict[str, set[str]]


class Recorder:
    """Files of the studio in which functions are called while it is on."""

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        self.files: set[str] = set()
        self.is_on = False

    def install(self) -> None:
        """Hook this thread and all that start from now on."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if not self.is_on or event != "call":
            return
        code = frame.f_code
        # A module's own body runs when it is imported, which is no part of a request.
        if code.co_name != "<module>" and code.co_filename.startswith(_STUDIO):
            self.files.add(code.co_filename[len(_STUDIO) :])

    def during(self, work: Callable[[], Any]) -> set[str]:
        """The files of what happens meanwhile, in all threads."""
        self.files = set()
        self.is_on = True
        try:
            work()
        finally:
            self.is_on = False
        return self.files


def trace(scenario: str, recorder: Recorder) -> Recorded:
    """Serve a studio of its own, run one scenario and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(_environment(scenario, Path(folder)))
        port = _free_port()
        recorded: Recorded = {}
        failed: list[BaseException] = []

        def drive() -> None:
            try:
                _wait_until_up(port)
                recorded.update(_SCENARIOS[scenario](port, recorder))
            except BaseException as error:  # noqa: BLE001 - raised again below
                failed.append(error)
            finally:
                os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=drive, daemon=True).start()
        serve = ["tableread", "serve", "--no-browser", "--port", str(port), "--host", "127.0.0.1"]
        with patch.object(sys, "argv", serve), suppress(SystemExit):
            runpy.run_module("studio", run_name="__main__")
        if failed:
            raise failed[0]
        return recorded


def _environment(scenario: str, folder: Path) -> dict[str, str]:
    environ = {"TABLEREAD_WORKSPACE": str(folder / "workspace"), "TTS_BACKEND": "draft"}
    if scenario == "batched":
        builder = next(ROOT.glob("tests/**/qwen3_checkpoint.py"))
        sys.path.insert(0, str(builder.parent))
        from qwen3_checkpoint import build_checkpoint  # type: ignore[import-not-found]

        model = build_checkpoint(folder / "model", "custom_voice")
        environ |= {"TTS_BACKEND": "qwen3", "QWEN3_TTS_MODEL": str(model)}
        # Alone on a CPU a line takes the one-line runner; two slots make the engine take it.
        environ |= {"TTS_BATCH_SIZE": "2", "TTS_DEVICE": "cpu"}
    return environ


def _speech(port: int, recorder: Recorder, *, voice: str = "Ida") -> Recorded:
    import httpx

    def speak() -> None:
        body = {"voice": voice, "input": "Did you hear that?", "seed": _SEED}
        body["response_format"] = "wav"
        answer = httpx.post(f"http://127.0.0.1:{port}/v1/audio/speech", json=body, timeout=300)
        answer.raise_for_status()
        time.sleep(0.5)

    speak()
    return {"studio": recorder.during(speak)}


def _space(port: int, recorder: Recorder) -> Recorded:
    from playwright.sync_api import sync_playwright

    from studio.setup.browser import find_browser

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(os.environ),
            args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"],
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_function("() => document.querySelectorAll('[data-line]').length > 2")
        page.wait_for_timeout(3_000)
        tools = page.context.new_cdp_session(page)
        tools.send("Profiler.enable")
        tools.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})
        # The first line loads the voice, which the second one no longer does.
        for key in ("ArrowDown", "Space", "ArrowDown"):
            page.keyboard.press(key)
            page.wait_for_timeout(_PLAYED_S * 1_000)
        tools.send("Profiler.takePreciseCoverage")

        def press() -> None:
            page.keyboard.press("Space")
            page.wait_for_timeout(_PLAYED_S * 1_000)

        files = recorder.during(press)
        result = tools.send("Profiler.takePreciseCoverage")["result"]
        modules = set().union(
            *(
                _called_modules(script["functions"], page.request.get(script["url"]).text())
                for script in result
                if script["url"].endswith("/modules.js")
            )
        )
        browser.close()
    return {"studio": files, "page": modules}


def _called_modules(functions: list[dict[str, Any]], code: str) -> set[str]:
    """The page's modules in whose part of the joined script a function was called."""
    from studio.server.module_bundle import locate_modules

    beginnings = locate_modules(code)
    offsets = [offset for offset, _ in beginnings]
    called = (function["ranges"][0] for function in functions)
    places = (bisect(offsets, one["startOffset"]) for one in called if one["count"] > 0)
    return {beginnings[place - 1][1] for place in places if place > 0}


def _batched(port: int, recorder: Recorder) -> Recorded:
    return _speech(port, recorder, voice="vivian")


_SCENARIOS = {"speech": _speech, "space": _space, "batched": _batched}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_up(port: int) -> None:
    import httpx

    for _ in range(600):
        try:
            httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError("the studio did not start")


def main() -> None:
    """Print one block a scenario."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scenario", nargs="*", choices=[*_SCENARIOS, []])
    parser.add_argument("--files", action="store_true", help="name the files, too")
    arguments = parser.parse_args()
    if len(arguments.scenario) == 1:
        recorder = Recorder()
        recorder.install()
        recorded = trace(arguments.scenario[0], recorder)
        for kind, files in recorded.items():
            print(f"{arguments.scenario[0]:8} {kind:7} {len(files):4} files")
            if arguments.files:
                print("\n".join(f"    {name}" for name in sorted(files)))
        return
    import subprocess

    # One process each: a studio's models and threads outlive its server.
    for scenario in arguments.scenario or _SCENARIOS:
        command = [sys.executable, __file__, scenario, *(["--files"] * arguments.files)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
