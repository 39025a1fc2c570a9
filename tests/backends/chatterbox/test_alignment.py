"""The watch over the alignment forbids and forces a line's end where the package's does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

import torch
from attention_walk import Walk
from chatterbox.models.t3.inference import alignment_stream_analyzer
from chatterbox.models.t3.inference.alignment_stream_analyzer import (
    LLAMA_ALIGNED_HEADS,
    AlignmentStreamAnalyzer,
)
from chatterbox_checkpoint import checkpoint, one_thread
from chatterbox_lines import (
    MULTILINGUAL,
    NEARLY_GREEDY,
    Desk,
    Said,
    lines_of,
    refilled,
    tokens_in,
    tokens_together,
)
from runner_driver import run_out

from studio.backends.batching.runner_contract import StopReason
from studio.backends.chatterbox.alignment import (
    UNMONITORED_TEXT_TOKENS,
    AlignmentStep,
    StopRule,
    apply_decision,
    init_monitor,
    update_monitor,
)
from studio.backends.chatterbox.chatterbox_model import SOUND_TOKENS
from studio.backends.chatterbox.sequential_t3 import SpeechTokens

pytestmark = pytest.mark.models

END, VOCABULARY = 7, 12


@contextmanager
def told() -> Iterator[Counter[str]]:
    """Count what the package's analyzer decides: an end that it forbids, or forces and why."""
    kinds: Counter[str] = Counter()
    step = AlignmentStreamAnalyzer.step

    def counted(analyzer: AlignmentStreamAnalyzer, logits: torch.Tensor, **given: object):
        wanted = int(logits.argmax()) == analyzer.eos_idx
        logits = step(analyzer, logits, **given)
        kinds["forbidden"] += wanted and int(logits.argmax()) != analyzer.eos_idx
        return logits

    def warned(message: str) -> None:
        kinds.update(re.findall(r"(\w+)=(?:tensor\()?True", message))

    with (
        patch.object(AlignmentStreamAnalyzer, "step", counted),
        patch.object(alignment_stream_analyzer.logger, "warning", warned),
    ):
        yield kinds


class Unhooked(AlignmentStreamAnalyzer):
    """The package's analyzer, told what its hooks would see."""

    def _add_attention_spy(self, *_model) -> None:
        pass


def test_every_decision_is_that_of_the_package_over_random_attention():
    """Lines of different texts in one tensor, each against an analyzer of its own."""
    walks = [Walk(number) for number in range(24)]
    with told() as kinds:
        _compare(walks, steps=70)
    assert set(kinds) >= {"forbidden", "long_tail", "alignment_repetition", "token_repetition"}
    assert min(kinds.values()) >= 10


def _compare(walks: list[Walk], steps: int) -> None:
    longest = max(walk.text_at + walk.text_tokens for walk in walks) + 2
    watch = torch.tensor([init_monitor(walk.text_at, walk.text_tokens) for walk in walks])
    analyzers = [
        Unhooked(None, None, (walk.text_at, walk.text_at + walk.text_tokens), eos_idx=END)
        if walk.text_tokens > 5
        else None
        for walk in walks
    ]
    said = torch.full((len(walks), 1), VOCABULARY)
    seen = torch.zeros(len(walks), longest, longest)  # a prompt's attention, of no consequence
    for frame in range(steps):
        scores = torch.randn(len(walks), VOCABULARY, generator=walks[0].chance)
        scores[:, END] += 3
        mine = apply_decision(scores, watch, END)
        for row, analyzer in enumerate(analyzers):
            theirs = scores[row : row + 1].clone()
            if analyzer is not None:
                analyzer.last_aligned_attns = [seen[row]] * 3
                theirs = analyzer.step(theirs, next_token=int(said[row, -1]))
            assert torch.equal(mine[row : row + 1], theirs), (frame, row)
        tokens = torch.randint(0, 8, (len(walks), 1), generator=walks[0].chance)
        twice = (tokens == said[:, -1:])[:, 0] if frame else torch.zeros(len(walks)).bool()
        said = torch.cat([said, tokens], dim=1)
        attention = torch.stack([walk.attention(longest + frame) for walk in walks])
        frames = torch.full((len(walks),), frame + 1)
        watch = update_monitor(watch, AlignmentStep(attention, frames, twice), StopRule.PACKAGE)
        seen = attention[:, None]


def test_resting_rows_are_left_alone_whatever_they_hold():
    """A slot that was freed keeps a watch of a longer window; it must break nothing."""
    watch = torch.tensor([init_monitor(300, 90), init_monitor(0, 0)])
    seen = AlignmentStep(torch.zeros(2, 64), torch.tensor([0, 0]), torch.tensor([False, True]))
    scores = torch.randn(2, VOCABULARY)
    watch = update_monitor(watch, seen, StopRule.SPOKEN)
    assert torch.equal(apply_decision(scores, watch, END)[1], scores[1])


# Lines whose watched heads point at the token of the text that a plan names, for small models.

SURE = 40  # the speech token from which on the model wants to end
BACK_TO_START = range(40, 52)
TEXT_END = 60
DWELLS = 55  # the one from which on it says the same, if it can't end
SAME = 4_299


def planned(frame: int) -> int:
    """The token of the text that is looked at while the speech token of a frame is read.

    One after the other; then from the start again; then the end, whatever the text's length.
    """
    if frame in BACK_TO_START:
        return frame - BACK_TO_START.start
    return frame if frame < BACK_TO_START.start else TEXT_END


def align(t3: Any) -> None:
    """Let the watched heads follow the plan.

    A token's place in the text, and the place that a step looks for, are angles in two dimensions
    each of the embeddings, which the heads compare where positions hardly turn them.
    """
    chance = torch.Generator().manual_seed(11)
    basis = torch.linalg.qr(torch.randn(t3.dim, 7, generator=chance)).Q.T
    text, speech, ends, dwells, constant = basis[:2], basis[2:4], *basis[4:]
    frames = torch.arange(len(t3.speech_pos_emb.emb.weight))
    looked_at = torch.tensor([planned(int(frame)) for frame in frames])
    sure, same = (torch.where(frames[:, None] >= start, 1.0, -1.0) for start in (SURE, DWELLS))
    with torch.no_grad():
        t3.text_emb.weight *= 0.1
        t3.text_pos_emb.emb.weight.copy_(30 * angles(len(t3.text_pos_emb.emb.weight)) @ text)
        t3.speech_pos_emb.emb.weight.copy_(
            30 * angles(TEXT_END + 1)[looked_at] @ speech
            + 20 * (sure * ends + same * dwells + constant)
        )
        t3.speech_head.weight[SOUND_TOKENS:] = -constant
        t3.speech_head.weight[SAME] = dwells
        t3.speech_head.weight[t3.hp.stop_speech_token] = ends
        sharp = 160 / t3.dim**0.5  # a layer reads vectors as long as the root of their size
        for layer, head in LLAMA_ALIGNED_HEADS:
            attention = t3.tfmr.layers[layer].self_attn
            dims = head * attention.head_dim + torch.tensor([3, 7])  # which turn slowest
            attention.q_proj.weight[dims] = sharp * speech
            attention.k_proj.weight[dims] = sharp * text


def angles(count: int) -> torch.Tensor:
    """Points on less than half a circle, the last ones the same: [count, 2]."""
    angle = torch.arange(count).clamp(max=TEXT_END) * torch.pi / 100
    return torch.stack([angle.cos(), angle.sin()], dim=1)


# A text of each length after which something else happens.
TEXTS = {
    "long_tail": "Come in, my dear.",
    "alignment_repetition": "Come in, come in, and close the door.",
    "its own end": "Come in, come in, and close the door behind you.",
    "token_repetition": "Come in, come in, and close the door behind you, before the wind does.",
}


def aligned_lines(temperature: float = NEARLY_GREEDY) -> tuple[Said, ...]:
    """Eight lines: of each text two, in two languages, with other voices and settings."""
    return tuple(
        replace(
            like,
            text=tuple(TEXTS.values())[number % 4],
            sampling=replace(like.sampling, repetition_penalty=2.0),
            bound=62,
        )
        for number, like in enumerate(lines_of(MULTILINGUAL, temperature))
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    with one_thread():
        desk = Desk(MULTILINGUAL, checkpoint(MULTILINGUAL, tmp_path_factory))
        for t3 in (desk.model.t3, desk.packages_own):
            align(t3)
        yield desk


@pytest.fixture(scope="module")
def expected(desk) -> dict[Said, torch.Tensor]:
    """What the package makes of each line, having decided what its text is there for."""
    made = {}
    for line in aligned_lines():
        with told() as kinds:
            made[line] = desk.of_package(line)
        [kind] = (kind for kind, text in TEXTS.items() if text == line.text)
        assert {forced for forced in TEXTS if kinds[forced]} == {kind} - {"its own end"}
        assert (kinds["forbidden"] > 0) is (kind != "long_tail")
        assert 10 < len(made[line]) < line.bound
    return made


def wrong(made: dict[Said, torch.Tensor], expected: dict[Said, torch.Tensor]) -> list[Said]:
    return [line for line, tokens in made.items() if not torch.equal(tokens, expected[line])]


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_lines_end_where_the_package_ends_them(desk, expected, batch):
    core, lines, made = desk.core(), aligned_lines()[: max(4, batch)], {}
    for start in range(0, len(lines), batch):
        batched = lines[start : start + batch]
        bucket = next(size for size in core.buckets if size >= len(batched))
        tokens = tokens_together(
            core, bucket, [desk.admission(core, slot, line) for slot, line in enumerate(batched)]
        )
        made |= {line: tokens[slot] for slot, line in enumerate(batched)}
    assert wrong(made, expected) == []


def test_in_used_slots_too_while_others_go_on(desk, expected):
    made = refilled(desk, desk.core(slots=3), 3, [(line, 0) for line in aligned_lines()])
    assert wrong(made, expected) == []


def test_a_line_carried_to_another_slot_takes_its_watch_along(desk, expected):
    core, line = desk.core(), aligned_lines()[1]
    core.admit([desk.admission(core, 5, line)])
    for _ in range(42):  # its text is spoken, and it is back at the start
        core.step(8)
    core.move(5, 0)
    run_out(core, 1)
    assert wrong({line: tokens_in(core, 0)}, expected) == []


def test_lively_lines_end_alike_alone_among_others_and_in_used_slots(desk):
    core, lines = desk.core(), aligned_lines(0.8)[:4]
    alone = {
        line: tokens_together(core, 1, [desk.admission(core, 0, line, seed=seed)])[0]
        for seed, line in enumerate(lines)
    }
    together = tokens_together(
        core, 4, [desk.admission(core, seed, line, seed=seed) for seed, line in enumerate(lines)]
    )
    assert wrong({line: together[seed] for seed, line in enumerate(lines)}, alone) == []
    order = list(enumerate(lines))[::-1]
    assert wrong(refilled(desk, core, 3, [(line, seed) for seed, line in order]), alone) == []


def test_a_text_too_short_to_be_watched_is_that_of_the_single_line_backend(desk):
    """The package itself fails on it once it is spoken."""
    line, core = replace(aligned_lines()[0], text="7", language="de"), desk.core()
    prompt = desk.admission(core, 0, line).prompt
    assert prompt.text_tokens == UNMONITORED_TEXT_TOKENS
    made = tokens_together(core, 1, [desk.admission(core, 0, line)])[0]
    assert torch.equal(made, desk.line_by_line(line))
    with told() as kinds, pytest.raises(IndexError):
        desk.of_package(line)
    assert not kinds["long_tail"]


def test_by_the_studios_rule_a_line_is_the_same_alone_and_among_others(desk):
    """What the package's rule cuts isn't taken for whole; by the studio's it goes on."""
    [cut, *_] = (line for line in aligned_lines() if line.text == TEXTS["token_repetition"])
    by_package = desk.single(cut)
    assert not by_package.ended
    lines = aligned_lines()[:4]
    with by_the_studios_rule(desk):
        single = {line: desk.single(line) for line in lines}
        core = desk.core()
        slots = list(enumerate(single))
        together = tokens_together(
            core, 4, [desk.admission(core, slot, line) for slot, line in slots]
        )
    assert wrong({line: together[slot] for slot, line in slots}, _tokens(single)) == []
    for line, made in single.items():
        # The longest has more text than its bound has tokens.
        assert made.ended is (line.text != cut.text)
        assert (len(made.tokens) == line.bound) is not made.ended
    assert max(len(made.tokens) for made in single.values()) > len(by_package.tokens)


def test_the_core_says_that_the_packages_rule_cut_a_line(desk):
    for name, stop in (("token_repetition", StopReason.BOUND), ("long_tail", StopReason.ENDED)):
        [line, *_] = (line for line in aligned_lines() if line.text == TEXTS[name])
        core = desk.core()
        core.admit([desk.admission(core, 0, line)])
        run_out(core, 1)
        assert core.progress(latest=True)[0].stop is stop
        core.close()


def _tokens(made: dict[Said, SpeechTokens]) -> dict[Said, torch.Tensor]:
    return {line: one.tokens for line, one in made.items()}


@contextmanager
def by_the_studios_rule(desk: Desk) -> Iterator[None]:
    desk.ends = StopRule.SPOKEN
    yield
    desk.ends = StopRule.PACKAGE
