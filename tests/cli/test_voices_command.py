"""`voices`: the list, and what it refuses."""

import io
import json

import pytest
from tiny_hub import TinyHub

from studio.app import main
from studio.backends.base import WeightSource


@pytest.fixture
def run(tmp_path, capsys):
    def run(*words):
        status = main(["voices", *words, "--workspace", str(tmp_path / "workspace")])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_the_list_has_every_engine_with_its_licence(run):
    status, out, err = run("list", "--json")
    voices = {one["name"]: one for one in json.loads(out)}
    assert (status, err) == (0, "")
    assert voices["zipvoice"]["non_commercial"]
    assert voices["kitten"]["weights_licence"] == "Apache-2.0"
    assert voices["draft"]["ready"]
    _, tables, _ = run("list")
    table, recognisers, others = tables.split("\n\n")
    assert [row.split()[0] for row in table.splitlines()] == ["NAME", *voices]
    assert "not for commercial use" in table
    assert f"{recognisers}\n" == run("list", "--recognisers")[1]
    rows = others.splitlines()
    assert [row.split("  ")[0] for row in rows] == ["NAME", "campplus", "ge2e", "gtcrn"]
    _, campplus, _, _ = rows
    assert "Apache-2.0; weights Apache-2.0 (trained on VoxCeleb2)" in campplus


def test_recognisers_are_listed_with_their_licences_and_languages(run):
    status, out, err = run("list", "--recognisers", "--json")
    found = {one["name"]: one for one in json.loads(out)}
    assert (status, err) == (0, "")
    assert found["whisper-small"]["weights_licence"] == "MIT"
    assert "cy" in found["whisper-small"]["languages"]
    assert found["parakeet"]["word_times"]
    table = run("list", "--recognisers")[1].splitlines()
    assert [row.split()[0] for row in table] == ["NAME", *found]
    assert run("remove", "parakeet", "--yes")[2].startswith("Parakeet TDT 0.6B v3 has no weights")
    assert run("remove", "gtcrn", "--yes")[2].startswith("GTCRN has no weights")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["list"], "kokoro"),
        (["list", "--json"], "kokoro"),
        (["list", "kokoro", "--json"], "Heart"),
        (["list", "--recognisers", "--json"], "parakeet"),
        (["list", "--public"], "Portugu"),
    ],
)
def test_a_list_is_printed_in_whatever_encoding(run, monkeypatch, encoding, words, name):
    printed = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(printed, encoding))
    assert run(*words)[0] == 0
    text = printed.getvalue().decode(encoding)
    assert name in text
    if "--json" in words:
        assert json.loads(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("install",), "Name a voice engine"),
        (("install", "nobody"), "There is no backend “nobody”"),
        (("install", "draft"), "nothing to download"),
        (("remove", "draft"), "nothing to download"),
        (("try", "draft", "-o", "a.xyz"), "a.xyz"),
        (("try", "draft", "--voice", "missing.wav"), "missing.wav can't be read"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(run, words, message):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert message in err


def test_a_try_writes_a_sentence_and_remembers_the_speed(run, tmp_path):
    path = tmp_path / "said.wav"
    status, out, _ = run("try", "draft", "-o", str(path))
    assert status == 0
    assert "s of speech in" in out
    assert path.stat().st_size > 50_000
    draft = next(one for one in json.loads(run("list", "--json")[1]) if one["name"] == "draft")
    assert draft["speech_per_s"] > 1


def test_the_public_voices_are_listed_by_language_with_size_and_licence(run):
    status, out, err = run("list", "piper", "--public")
    rows = out.splitlines()
    assert (status, err) == (0, "")
    assert rows[0].split() == ["NAME", "LANGUAGE", "QUALITY", "SPEAKERS", "LICENCE", "SIZE"]
    [joe] = [row for row in rows if row.startswith("en_US-joe-medium ")]
    assert [cell.strip() for cell in joe.split("  ") if cell] == [
        *("en_US-joe-medium", "English (United States)", "medium", "1", "CC0 1.0", "63 MB")
    ]


def test_a_public_voice_is_installed_by_its_name(run, monkeypatch, tmp_path):
    pytest.importorskip("onnxruntime")
    hub = TinyHub({})
    with hub.serving(monkeypatch, tmp_path / "cache"):
        monkeypatch.setattr(WeightSource, "stated", property(lambda one: one.files))
        hub.status = 404
        status, _, err = run("install", "de_DE-thorsten-medium")
    assert status == 2
    assert "de_DE-thorsten-medium (63 MB): CC0 1.0." in err
    assert "answers 404; check the network and try again" in err


@pytest.fixture
def kitten(monkeypatch, tmp_path):
    """What the hub holds in its place."""
    hub = TinyHub({"model.fp32.onnx": b"model" * 99, "voices.bin": b"v" * 99, "tokens.txt": b"a 0"})
    with hub.serving(monkeypatch, tmp_path / "cache"):
        yield hub.files


def verified(run):
    status, out, _ = run("verify", "kitten")
    rows = [row.split(maxsplit=2) for row in out.splitlines() if row.startswith("kitten  ")]
    return status, {row[1]: row[2] for row in rows}, out


def test_verify_says_of_each_file_what_became_of_it(run, kitten, tmp_path):
    assert "kitten" in run("verify")[1]
    assert verified(run)[2].splitlines()[1].split(maxsplit=1) == ["kitten", "not here"]
    assert run("install", "kitten")[0] == 0
    assert verified(run)[:2] == (0, dict.fromkeys(kitten, "whole"))
    (blob,) = {path.resolve() for path in (tmp_path / "cache").rglob("voices.bin")}
    content = bytearray(blob.read_bytes())
    content[50] ^= 1
    blob.write_bytes(content)
    (tokens,) = (tmp_path / "cache").rglob("tokens.txt")
    tokens.unlink()
    status, states, out = verified(run)
    assert status == 1
    assert states == {"model.fp32.onnx": "whole", "voices.bin": "broken", "tokens.txt": "missing"}
    assert "`voices remove kitten`, then `voices install kitten`" in out


def test_verify_knows_all_models_of_the_catalogues_and_no_other(run):
    status, out, _ = run("verify")
    assert status == 0
    assert {"kokoro", "parakeet", "gtcrn"} <= {row.split()[0] for row in out.splitlines()}
    assert run("verify", "nobody")[0] == 2
