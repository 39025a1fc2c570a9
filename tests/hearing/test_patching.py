"""Patches of a take: nothing else changes, and the seams are no louder than word boundaries."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from event_speaker import EventSpeaker
from seam_flux import flux_at

from studio.audio.clip import STUDIO_RATE_HZ, Clip, from_pcm16, to_pcm16
from studio.errors import BadInput, SpeechFailed
from studio.hearing.draft_reading import DraftReader
from studio.hearing.patching import AlignedClip, Patch, lay_patch
from studio.hearing.word_times import WordTime, align_words

SENTENCES = (
    "The lamp is still burning, and nobody has climbed the stairs since Tuesday.",
    "I never said that you could take the boat out on your own.",
    "When the rain stopped, we walked back along the river to the old mill.",
    "Please bring me a cup of tea, and close the window behind you.",
    "Nobody in this house remembers where the silver key was hidden.",
    "She laughed, shook her head, and put the letter back into the drawer.",
    "It was almost midnight when the last train left the station.",
    "My brother sells apples and pears at the market every Saturday morning.",
)
VOICES = ("en", "en+f2", "en-us+m3", "en+m1")


@cache
def speaker() -> EventSpeaker:
    return EventSpeaker()


def reading(text: str, **how: object) -> AlignedClip:
    """A reading as a take has it: of 16 bits."""
    clip, words = speaker().speak(text, **how)
    return AlignedClip(Clip(from_pcm16(to_pcm16(clip.samples))), words)


def digest(samples: np.ndarray) -> str:
    return hashlib.sha256(to_pcm16(samples).tobytes()).hexdigest()


def assert_rest_is_the_takes(take: AlignedClip, patch: Patch) -> None:
    """By the bytes that are written to the disk."""
    old, new = take.clip.samples, patch.clip.samples
    assert digest(new[: patch.start]) == digest(old[: patch.start])
    assert digest(new[patch.end :]) == digest(old[patch.resumes :])
    assert len(new) == len(old) + patch.end - patch.resumes


def shifted(words: list[WordTime], chance: random.Random, error_s: float) -> list[WordTime]:
    """Words whose boundaries an aligner has missed by some milliseconds."""
    starts = [max(0.0, one.start_s + chance.gauss(0, error_s)) for one in words]
    ends = [*starts[1:], words[-1].end_s]
    return [
        replace(one, start_s=start_s, end_s=max(start_s + 0.03, end_s))
        for one, start_s, end_s in zip(words, starts, ends, strict=True)
    ]


FindWords = Callable[[AlignedClip, str], list[WordTime]]


def measure_patches(count: int, find_words: FindWords) -> tuple[list[float], list[float]]:
    """Flux at the word boundaries of takes, and at the seams of patches by another reading.

    The other reading differs in pace, pitch, melody and level, as that of a seed does.
    """
    chance = random.Random(15)
    usual: list[float] = []
    seams: list[float] = []
    for number in range(count):
        text, voice = SENTENCES[number % len(SENTENCES)], chance.choice(VOICES)
        pitch = chance.randint(35, 60)
        take = reading(text, voice=voice, pitch=pitch)
        how = {"pitch": pitch + chance.randint(-4, 4), "rate": chance.randint(155, 195)}
        donor = reading(text, voice=voice, spread=chance.randint(30, 70), **how)
        gain = np.float32(10 ** (chance.uniform(-4, 4) / 20))
        donor = AlignedClip(Clip(donor.clip.samples * gain), find_words(donor, text))
        usual += flux_at(take.clip, [one.start_s for one in take.words[1:]])
        take = AlignedClip(take.clip, find_words(take, text))
        first = chance.randrange(len(take.words))
        last = min(len(take.words), first + chance.randint(1, 4)) - 1
        patch = lay_patch(take, donor, take.words[first].start, take.words[last].end)
        assert_rest_is_the_takes(take, patch)
        inner = [(first > 0, patch.start), (last < len(take.words) - 1, patch.end)]
        seams += flux_at(patch.clip, [at / STUDIO_RATE_HZ for is_seam, at in inner if is_seam])
    return usual, seams


@pytest.fixture(scope="module")
def reader() -> Iterator[DraftReader]:
    reader = DraftReader()
    yield reader
    reader.close()


@pytest.mark.parametrize("words", ["exact", "missed by 15 ms", "aligned"])
@pytest.mark.parametrize("count", [16, pytest.param(200, marks=pytest.mark.campaign)])
def test_seams_are_no_louder_than_word_boundaries(
    count: int, words: str, reader: DraftReader
) -> None:
    chance = random.Random(16)
    find_words: dict[str, FindWords] = {
        "exact": lambda one, _text: list(one.words),
        "missed by 15 ms": lambda one, _text: shifted(list(one.words), chance, 0.015),
        "aligned": lambda one, text: list(align_words(one.clip, text, "en", reader=reader)),
    }
    usual, seams = measure_patches(count, find_words[words])
    usual_p95, seams_p95 = np.percentile(usual, 95), np.percentile(seams, 95)
    print(f"{len(seams)} seams: p95 of the flux {seams_p95:.3f}, of boundaries {usual_p95:.3f}")
    assert seams_p95 <= usual_p95


def test_the_flux_shows_a_click() -> None:
    take = reading(SENTENCES[0])
    usual = flux_at(take.clip, [one.start_s for one in take.words[1:]])
    vowel = round(2.60 * STUDIO_RATE_HZ)
    samples = take.clip.samples.copy()
    samples[vowel] += np.abs(samples).max()
    [click] = flux_at(Clip(samples), [vowel / STUDIO_RATE_HZ])
    [whole] = flux_at(take.clip, [vowel / STUDIO_RATE_HZ])
    assert click > np.percentile(usual, 95) > whole


def test_the_phrase_is_that_of_the_other_reading() -> None:
    take, donor = reading(SENTENCES[1]), reading(SENTENCES[1], rate=140)
    word = take.words[3]
    patch = lay_patch(take, donor, word.start, word.end)
    spoken, was = donor.words[3], take.words[3]
    longer_s = (spoken.end_s - spoken.start_s) - (was.end_s - was.start_s)
    assert (patch.end - patch.resumes) / STUDIO_RATE_HZ == pytest.approx(longer_s, abs=0.06)
    middle = patch.clip.samples[patch.start + 400 : patch.end - 400]
    found = np.correlate(donor.clip.samples, middle, "valid")
    gain = found.max() / np.square(middle).sum()
    at = int(found.argmax())
    assert np.allclose(donor.clip.samples[at : at + len(middle)], gain * middle, atol=1e-4)


def test_its_level_is_that_of_the_take() -> None:
    take = reading(SENTENCES[2])
    quiet = AlignedClip(Clip(take.clip.samples * np.float32(0.4)), take.words)
    patch = lay_patch(take, quiet, take.words[4].start, take.words[5].end)
    assert np.abs(patch.clip.samples - take.clip.samples).max() < 2e-3


def test_the_first_and_the_last_words_can_be_said_again() -> None:
    take, donor = reading(SENTENCES[3]), reading(SENTENCES[3], pitch=55)
    for words in (take.words[:2], take.words[-2:], take.words):
        assert_rest_is_the_takes(take, lay_patch(take, donor, words[0].start, words[-1].end))


@pytest.mark.parametrize("text", [SENTENCES[1], SENTENCES[3]])
def test_most_of_a_short_word_is_new(text: str) -> None:
    """Of an “a” of 60 ms, too, though a seam may lie 50 ms inside of a longer word."""
    take, donor = reading(text, voice="en+m3"), reading(text, voice="en+m3", pitch=55, rate=190)
    for word in take.words:
        patch = lay_patch(take, donor, word.start, word.end)
        first_s, end_s = patch.start / STUDIO_RATE_HZ, patch.resumes / STUDIO_RATE_HZ
        new_s = min(word.end_s, end_s) - max(word.start_s, first_s)
        assert new_s >= 0.5 * (word.end_s - word.start_s), word


def test_a_long_number_is_one_word() -> None:
    text = "The house cost $1,234,567.89 and a horse."
    word = WordTime("$1,234,567.89", 15, 28, 0.9, 5.2)
    around = ("The", 0, 3, 0.1, 0.3), ("house", 4, 9, 0.3, 0.6), ("and", 29, 32, 5.2, 5.4)
    words = sorted([word, *(WordTime(*one) for one in around)], key=lambda one: one.start)
    take, _ = speaker().speak(text)
    take = Clip(take.samples[: 6 * STUDIO_RATE_HZ])
    lay_patch(AlignedClip(take, words), AlignedClip(take, words), word.start, word.end)


def test_a_clause_is_enough() -> None:
    text = SENTENCES[0]
    offset = text.index("and")
    take, donor = reading(text), reading(text[offset:], pitch=53)
    start = text.index("climbed")
    patch = lay_patch(take, donor, start, start + len("climbed"), offset=offset)
    assert_rest_is_the_takes(take, patch)
    assert patch.start / STUDIO_RATE_HZ == pytest.approx(take.words[8].start_s, abs=0.07)


def test_what_cant_be_laid_is_refused() -> None:
    take = reading(SENTENCES[4])
    word = take.words[2]
    with pytest.raises(BadInput, match="Mark the words"):
        lay_patch(take, take, 5, 5)
    silent = AlignedClip(Clip.silence(2.0), take.words)
    with pytest.raises(SpeechFailed, match="said nothing"):
        lay_patch(take, silent, word.start, word.end)
    gap = take.clip.samples.copy()
    first, after = (round(at_s * STUDIO_RATE_HZ) for at_s in (word.start_s, word.end_s))
    gap[first:after] = 0
    with pytest.raises(SpeechFailed, match="left these words out"):
        lay_patch(take, AlignedClip(Clip(gap), take.words), word.start, word.end)
    squeezed = [replace(one, end_s=one.start_s + 0.005) for one in take.words]
    with pytest.raises(SpeechFailed, match="too short or too long"):
        lay_patch(take, AlignedClip(take.clip, squeezed), word.start, word.end)
    noise = np.random.default_rng(2).normal(size=len(take.clip)) * 0.1
    hiss = AlignedClip(Clip(noise.astype(np.float32)), take.words)
    other, _ = speaker().speak(SENTENCES[5])
    for wrong in (hiss, AlignedClip(other, take.words)):
        for pair in ((take, wrong), (wrong, take)):
            with pytest.raises(SpeechFailed, match="sound different in both"):
                lay_patch(*pair, word.start, word.end)
    with pytest.raises(SpeechFailed, match="aren't found"):
        lay_patch(take, AlignedClip(take.clip, take.words[:1]), word.start, word.end)
