"""What a render tells of segments that may not be right, and how it tries them again."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scenes import OpenStudio, finish
from voice_like import voice_like
from wandering import WanderingDraft

from studio.audio.clip import Samples, write_wav
from studio.backends.base import VARIED_SEEDS, Conditioning, SpeechRequest
from studio.dialog.model import Dialog, Silence, Speech, SpeechLimits
from studio.dialog.planning import SpeechSegment, plan
from studio.engine.job import Job, build_scene, find_segment_issues
from studio.engine.renderer import derive_cut_retry_seed, derive_quality_retry_seed
from studio.errors import SpeechFailed
from studio.quality.checks import IssueKind, build_expected_speech
from studio.services.studio import RenderOptions
from studio.voices.speaker import Voice

WORDS = ("one", "two", "three", "four", "five", "six")


def job_of(open_studio: OpenStudio, backend: WanderingDraft, *lines: Speech, **how: object) -> Job:
    job = open_studio(backend).render(Dialog(lines), RenderOptions(seed=5, **how))
    finish(job)
    return job


def line(text: str, seed: int | None = None, **params: float) -> Speech:
    return Speech("Ida", text, seed=seed, params=params)


def test_a_doubtful_segment_is_named_with_its_line_and_reason(
    open_studio: OpenStudio, tmp_path: Path
) -> None:
    lines = (line("All is well."), line("I saw the marsh."), line("Good night."))
    job = job_of(open_studio, WanderingDraft(), *lines)
    [one] = find_segment_issues(job)
    assert (one.segment_idx, one.line_number) == (1, 2)
    assert [doubt.kind for doubt in one.issues] == [IssueKind.TAIL]
    build_scene(job).write(tmp_path / "scene.zip")
    with zipfile.ZipFile(tmp_path / "scene.zip") as archive:
        rows = json.loads(archive.read("manifest.json"))["segments"]
    assert [row["doubtful"] for row in rows] == [[], [one.message], []]
    assert [row["at_s"] for row in rows] == [record.timestamps_s for record in job.records]
    assert list(rows[0]["at_s"]) == ["planned", "queued", "started", "generated", "saved"]


def test_a_line_that_lasts_longer_than_it_may_is_told_once(open_studio: OpenStudio) -> None:
    lines = (
        line("All is [pause:2s] well.", max_duration=1.5),
        line("All is well.", max_duration=30),
        line("All is well."),
    )
    job = job_of(open_studio, WanderingDraft(), *lines)
    lasts_s = round(sum(one.samples for one in job.records[:3]) / 24_000, 2)
    [one] = find_segment_issues(job)
    assert (one.segment_idx, one.line_number) == (0, 1)
    assert [(issue.kind, issue.figure) for issue in one.issues] == [("over", lasts_s)]
    assert one.message == f"{lasts_s:g} s, 1.5 allowed."


def test_a_voice_is_compared_with_itself_once_there_are_eight(open_studio: OpenStudio) -> None:
    class Fading(WanderingDraft):
        """Whispers one line."""

        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            for chunk in super().speak(request):
                yield chunk * (0.2 if "whisper" in request.text else 1)

    texts = [f"This is line number {word}." for word in WORDS]
    lines = [line(text) for text in (*texts, "And this is a whisper.")]
    job = job_of(open_studio, Fading(), *lines)
    assert find_segment_issues(job) == ()
    job = job_of(open_studio, Fading(), *lines, line("The last one is this."))
    assert [(one.line_number, one.message) for one in find_segment_issues(job)] == [
        (7, "14 dB quieter than Ida’s other lines.")
    ]


def test_a_mood_is_compared_with_itself(open_studio: OpenStudio) -> None:
    class Fading(WanderingDraft):
        """Whispers where the text says so, which no recording tells it to."""

        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            for chunk in super().speak(request):
                yield chunk * (0.2 if "whisper" in request.text else 1)

    texts = [f"This is line number {word}." for word in (*WORDS, "seven", "eight")]
    whisper = Speech("Ida", "And this is a whisper.", params={"mood": "whispering"})
    job = job_of(open_studio, Fading(), *map(line, texts), whisper)
    assert find_segment_issues(job) == ()
    job = job_of(open_studio, Fading(), *map(line, texts), line(whisper.text))
    assert [one.message for one in find_segment_issues(job)] == [
        "14 dB quieter than Ida’s other lines."
    ]


def test_a_voice_unlike_its_sample_is_named(open_studio: OpenStudio, tmp_path: Path) -> None:
    class Stubborn(WanderingDraft):
        """Speaks in a bright voice, whatever the sample."""

        def condition(self, voice: Voice) -> Conditioning:
            return super().condition(Voice("Ida", preset="Annie"))

    sample = tmp_path / "sample.wav"
    write_wav(sample, voice_like(4.0, pitch_hz=90.0))
    text = "The children were hiding upstairs, and that was all."
    for backend, marks in ((Stubborn(), 1), (WanderingDraft(), 0)):
        job = job_of(open_studio, backend, line(text), voices={"Ida": sample})
        found = [one.message for one in find_segment_issues(job)]
        assert len(found) == marks
        assert all(re.fullmatch(r"Higher by 1\d semitones than its sample\.", one) for one in found)
        assert job.records[0].report.metrics.sample_mean_pitch == pytest.approx(-2.5, abs=1.5)


def test_how_fast_a_line_is_asked_for_is_known(open_studio: OpenStudio) -> None:
    job = job_of(open_studio, WanderingDraft(), line("Hello.", speed=0.5), line("Hello."))
    assert [build_expected_speech(record.segment).speed for record in job.records] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("speed", "counts_as"), [(0.5, 0.5), (2, 2.0), (0, 1.0), (-1, 1.0), (True, 1.0), ("fast", 1.0)]
)
def test_a_speed_that_is_none_counts_as_the_usual_one(speed: object, counts_as: float) -> None:
    [segment] = plan(Dialog((line("Hello."),)), SpeechLimits(max_chars=300)).segments
    assert isinstance(segment, SpeechSegment)
    assert build_expected_speech(replace(segment, params={"speed": speed})).speed == counts_as


@pytest.mark.parametrize(("word", "spoken"), [("brook", 2), ("marsh", 3), ("river", 1)])
def test_a_doubtful_segment_is_spoken_so_often_at_most(
    open_studio: OpenStudio, word: str, spoken: int
) -> None:
    backend = WanderingDraft()
    text = f"Follow the {word}."
    job = job_of(open_studio, backend, line(text), tries=3)
    chain = [5]
    while len(chain) < 3:
        chain.append(derive_quality_retry_seed(chain[-1], VARIED_SEEDS[0]))
    assert backend.seeds[text] == chain[:spoken]
    assert len(find_segment_issues(job)) == (word == "marsh")
    assert len(job.list_retries()) == (word != "river")


def test_a_line_that_names_its_seed_is_spoken_once(open_studio: OpenStudio) -> None:
    backend = WanderingDraft()
    job = job_of(open_studio, backend, line("A brook.", seed=9), tries=4)
    assert backend.seeds["A brook."] == [9]
    assert len(find_segment_issues(job)) == 1


def test_a_further_try_that_fails_or_is_cut_takes_nothing_away(open_studio: OpenStudio) -> None:
    class Tired(WanderingDraft):
        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            spoken = super().speak(request)
            if request.seed == 5:
                yield from spoken
                return
            if "cut" in request.text:
                yield next(spoken)
            raise SpeechFailed("Not this time.")

    texts = ("The marsh.", "The marsh is cut.")
    job = job_of(open_studio, Tired(), *map(line, texts), tries=3)
    assert job.list_failures() == ()
    assert [one.line_number for one in find_segment_issues(job)] == [1, 2]


def test_seeds_of_further_tries_are_not_those_of_second_ones() -> None:
    assert derive_quality_retry_seed(None) is None
    assert derive_quality_retry_seed(5) not in (5, derive_cut_retry_seed(5))
    assert derive_quality_retry_seed(5) == derive_quality_retry_seed(5)
    first, end = VARIED_SEEDS
    assert first <= derive_quality_retry_seed(None, first) < end


def test_issues_are_found_behind_lines_without_a_report(open_studio: OpenStudio) -> None:
    job = open_studio(WanderingDraft()).render(
        Dialog((Silence(0.2), line("😀"), line("I saw the marsh."))), RenderOptions(seed=5)
    )
    finish(job)
    assert [one.line_number for one in find_segment_issues(job)] == [3]


def test_a_try_that_is_cut_is_followed_by_another(open_studio: OpenStudio) -> None:
    class Stumbling(WanderingDraft):
        """Is cut off the second time."""

        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            spoken = super().speak(request)
            yield next(spoken)
            if len(self.seeds[request.text]) == 2:
                raise SpeechFailed("Not this time.")
            yield from spoken

    backend = Stumbling()
    job = job_of(open_studio, backend, line("By the brook."), tries=3)
    assert len(backend.seeds["By the brook."]) == 3
    assert find_segment_issues(job) == ()
    assert job.list_failures() == ()


def test_tries_are_compared_with_the_lines_of_their_voice(open_studio: OpenStudio) -> None:
    class Fading(WanderingDraft):
        """Whispers one line the first time."""

        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            gain = 0.2 if "whisper" in request.text and request.seed == 5 else 1
            for chunk in super().speak(request):
                yield chunk * gain

    texts = [f"This is line number {word}." for word in (*WORDS, "seven", "eight", "nine", "ten")]
    lines = [line(text) for text in (*texts, "And this is a whisper.")]
    job = open_studio(Fading(), max_concurrency=1).render(
        Dialog(tuple(lines)), RenderOptions(seed=5, tries=2)
    )
    finish(job)
    last = job.records[-1]
    assert [[issue.kind for issue in one.issues] for one in last.tries] == [["level"], []]
    assert last.best_try == 1
    assert [one.path is not None and one.path.exists() for one in last.tries] == [True, True]
    assert find_segment_issues(job) == ()
