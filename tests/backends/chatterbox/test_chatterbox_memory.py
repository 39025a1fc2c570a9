"""What Chatterbox keeps of its voices is reckoned before slots are chosen."""

from __future__ import annotations

import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

from chatterbox_checkpoint import BY_NAME, checkpoint, one_thread
from chatterbox_lines import ENGLISH, TURBO, Desk, lines_of

from studio.backends.chatterbox.chatterbox_memory import (
    PREFIX_POSITIONS,
    RELEASED_T3_DIMS,
    T3Dims,
    count_prefix_bytes,
    plan_t3_memory,
)
from studio.backends.options import BatchOptions

pytestmark = pytest.mark.models

GB = 10**9
MB = 10**6


@pytest.mark.parametrize(("variant", "each_mb"), [(TURBO, 74), (ENGLISH, 17)])
def test_eight_voices_of_the_released_models(variant, each_mb):
    beginning = RELEASED_T3_DIMS[variant].prefix_bytes(PREFIX_POSITIONS[variant])
    assert round(beginning / MB) == each_mb
    kept = count_prefix_bytes(BY_NAME[variant], RELEASED_T3_DIMS[variant])
    assert kept == 8 * beginning
    room = plan_t3_memory(
        BY_NAME[variant], RELEASED_T3_DIMS[variant], 40 * GB, "cuda", BatchOptions()
    )
    assert room.layout.kept_bytes == kept
    assert room.kept_bytes == kept + 200 * MB
    assert room.slots_bytes + room.sound_bytes + room.kept_bytes < 0.9 * 40 * GB - 2 * GB


@pytest.mark.parametrize("variant", [TURBO, ENGLISH])
def test_a_kept_beginning_takes_what_was_reckoned(variant, tmp_path_factory):
    with one_thread():
        desk = Desk(variant, checkpoint(variant, tmp_path_factory))
        core = desk.core(4)
        lines = lines_of(variant)[:3]
        core.admit([desk.admission(core, slot, line) for slot, line in enumerate(lines)])
    dimensions = T3Dims.of(desk.model.t3, half=False)
    shared = PREFIX_POSITIONS[variant]
    admission = desk.admission(core, 3, lines[0])
    assert admission.prompt.shared <= shared
    kept = core.prefix_cache
    assert kept.computed == len({(line.voice, line.exaggeration) for line in lines})
    each = dimensions.prefix_bytes(admission.prompt.shared)
    assert kept.size_bytes <= kept.computed * dimensions.prefix_bytes(shared)
    assert kept.size_bytes == pytest.approx(kept.computed * each, rel=0.35)
