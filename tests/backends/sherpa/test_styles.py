"""Styles are found in each kind of file, mixed by formulas, and offered where they are."""

import numpy as np
import pytest

from studio.backends.sherpa.styles import StyleTable, parse_formula
from studio.errors import ModelUnavailable

ROWS, WIDTH = 3, 4
RNG = np.random.default_rng(0)
A, B, C = RNG.standard_normal((3, ROWS, WIDTH)).astype(np.float32)


def table(*folders, order=("a", "b", "c")):
    return StyleTable(folders, order, ROWS, WIDTH)


def in_an_archive(folder):
    np.savez(folder / "voices.npz", a=A[:, None], b=B[:, None], c=C[:, None])


def in_an_archive_called_bin(folder):
    in_an_archive(folder)
    (folder / "voices.npz").rename(folder / "voices-v1.0.bin")


def one_behind_the_other(folder):
    np.stack([A, B, C]).tofile(folder / "voices.bin")


def in_files_of_their_own(folder):
    for name, style in {"a": A, "b": B, "c": C}.items():
        style.tofile(folder / f"{name}.bin")


@pytest.mark.parametrize(
    "write",
    [in_an_archive, in_an_archive_called_bin, one_behind_the_other, in_files_of_their_own],
    ids=lambda one: one.__name__,
)
def test_a_style_is_read_from_each_kind_of_file(write, tmp_path):
    write(tmp_path)
    found = table(tmp_path)
    assert all(map(np.array_equal, map(found.mix, "abc"), (A, B, C)))
    assert found.has("a|b+c")
    assert not found.has("a|b+d")
    with pytest.raises(ModelUnavailable, match="no style “d”"):
        found.mix("d")


@pytest.mark.parametrize(
    ("formula", "style"),
    [
        ("0.75*a + 0.25*b", 0.75 * A + 0.25 * B),
        ("1.3*a-0.3*c", 1.3 * A - 0.3 * C),
        ("a|b", np.hstack([A[:, :2], B[:, 2:]])),
        ("1.3*a-0.3*b|0.5*a+0.5*c", np.hstack([(1.3 * A - 0.3 * B)[:, :2], (A + C)[:, 2:] / 2])),
    ],
)
def test_a_formula_mixes_styles(formula, style, tmp_path):
    in_an_archive(tmp_path)
    mixed = table(tmp_path).mix(formula)
    assert mixed.dtype == np.float32
    assert np.allclose(mixed, style, atol=1e-6)


@pytest.mark.parametrize("formula", ["", "a|", "a|b|c", "0.5*", "a b", "2a", "a*0.5", "a++b", "1"])
def test_what_is_no_formula_is_refused(formula):
    with pytest.raises(ValueError, match="no formula"):
        parse_formula(formula)


def test_the_first_folder_counts_and_a_short_file_has_fewer(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    C.tofile(first / "a.bin")
    np.stack([A, B]).tofile(second / "voices.bin")
    found = table(first, second)
    assert np.array_equal(found.mix("a"), C)
    assert np.array_equal(found.mix("b"), B)
    assert not found.has("c")


def test_a_broken_archive_is_named(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ModelUnavailable, match=r"x\.npz is broken"):
        table(tmp_path)
