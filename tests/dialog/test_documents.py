"""Documents as other programs write them: word processors, Final Draft, PDFs, workbooks."""

import io
import random
import zipfile
from pathlib import Path

import pypdfium2
import pytest

from studio.dialog.documents.reading import find_document_kind
from studio.dialog.formats.dialog_file import ImportOptions, import_dialog
from studio.dialog.model import Silence, Speech, Unspoken
from studio.errors import ScriptError

DOCUMENTS = Path(__file__).with_name("documents")
"""One scene, as pandoc 2.17 and LibreOffice 7.4 write it; the PDFs are LibreOffice's."""

SCENE = [
    ("note", "The Lamp Room"),
    ("heading", "Scene one"),
    ("MARA", "Did you see the light go out?"),
    ("TOM", "I did. It went out at nine."),
    ("note", "He had not."),
    ("action", "A door slams."),
    ("MARA", "(whispering) Somebody is on the stairs."),
    ("heading", "Scene two"),
    ("TOM", "There’s nobody here, Mara. Nobody at all."),
]


def read(name, data=None):
    return import_dialog((DOCUMENTS / name).read_bytes() if data is None else data, name)


def list_rows(imported):
    rows = []
    for line in imported.dialog:
        if isinstance(line, Speech):
            rows.append((line.speaker, line.text))
        elif isinstance(line, Unspoken):
            rows.append((str(line.kind), line.text))
        elif isinstance(line, Silence):
            rows.append(("silence", line.duration_s))
    return rows


@pytest.mark.parametrize("name", ["lamp-room.docx", "lamp-room-libreoffice.docx", "lamp-room.odt"])
def test_a_word_processors_text_keeps_headings_notes_and_speakers(name):
    found = read(name)
    assert list_rows(found) == SCENE
    assert found.title == "The Lamp Room"


def test_rtf_is_read_and_says_that_footnotes_are_left_out():
    found = read("lamp-room.rtf")
    assert [row for row in list_rows(found) if row[0].isupper()] == [
        row for row in SCENE if row[0].isupper()
    ]
    assert any("Footnotes" in one.message for one in found.notices)


def test_a_book_is_read_in_its_order():
    book = read("lamp-room.epub")
    assert book.title == "The Lamp Room"
    rows, note = list_rows(book), SCENE[4]
    assert rows[:2] == 2 * [SCENE[0]], "as its own title page and first chapter have it"
    found = rows[2:]
    assert found == [*(row for row in SCENE[1:] if row != note), note], "notes end the chapter"


def test_rows_of_a_pdf_stand_as_on_its_page():
    found = read("lamp-room.pdf")
    assert list_rows(found) == [*SCENE[1:4], *SCENE[5:], SCENE[4]], "the note is at the page's end"
    assert found.title == "The Lamp Room"
    play = read("screenplay.pdf")
    assert list_rows(play) == [
        ("heading", "INT. LAMP ROOM - NIGHT"),
        ("action", "The lamp goes out."),
        ("MARA", "Did you see the light go out?"),
        ("TOM", "(calm) I did. It went out at nine, when nobody was there to see it."),
    ]


def test_a_screenplay_of_final_draft():
    found = read("lamp-room.fdx")
    assert found.title == "The Lamp Room"
    assert list_rows(found) == [
        ("heading", "INT. LAMP ROOM - NIGHT"),
        ("action", "The lamp goes out."),
        ("Mara", "Did you see the light go out?"),
        ("TOM", "(calm) I did."),
        ("action", "CUT TO:"),
    ]


@pytest.mark.parametrize(
    "name", ["cue-sheet.xlsx", "cue-sheet.ods", "cue-sheet.docx", "cue-sheet.odt"]
)
def test_a_table_is_one_whatever_holds_it(name):
    rows = [text for _, text in list_rows(read(name))]
    assert len(rows) == 2
    assert rows[1].startswith("(calm) ") or rows[0].startswith("(calm) ")


def test_subtitles_keep_their_silences_and_names():
    assert list_rows(read("lamp-room.ttml")) == [
        ("silence", 1.0),
        ("Mara", "Did you see the light?"),
        ("silence", 0.7),
        ("Mara", "It went out."),
    ]


PLAY = """<?xml version="1.0"?>
<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt><title>The Weir</title>
</titleStmt></fileDesc><profileDesc><particDesc><listPerson><person xml:id="anna"><persName>Anna
</persName></person><person xml:id="ben"><persName>Ben</persName></person></listPerson>
</particDesc></profileDesc></teiHeader><text><front><castList><castItem>Anna</castItem>
<castItem>Ben, a miller</castItem></castList></front><body><div><head>Act <hi>one</hi></head>
<stage>A weir.</stage><sp who="#anna"><speaker>ANNA.</speaker><p>Hello <hi>there</hi>.</p></sp>
<sp who="#ben"><speaker>BEN (off).</speaker><stage>laughing</stage><l>Hi,</l>
<l>my friend.<note>Sic.</note></l></sp>
<sp who="#anna #ben"><speaker>BOTH.</speaker><p>Bye.</p></sp>
<sp><p>Nobody's words: odd.</p></sp></div></body></text></TEI>"""


def test_a_play_of_a_library_is_its_speeches():
    play = read("play.xml", PLAY.encode())
    assert play.title == "The Weir"
    assert list_rows(play) == [
        ("note", "The Weir"),
        ("note", "Anna Ben, a miller"),
        ("heading", "Act one"),
        ("action", "A weir."),
        ("Anna", "Hello there."),
        ("Ben", "(laughing) Hi, my friend."),
        ("note", "Sic."),
        ("BOTH", "Bye."),
        ("note", "Nobody's words: odd."),
    ]


def test_comments_of_word_are_notes_and_what_was_deleted_is_gone():
    document = pack_docx(
        "<w:p><w:r><w:t>Mara: Come </w:t></w:r>"
        '<w:del w:id="1"><w:r><w:delText>no </w:delText></w:r></w:del>'
        '<w:ins w:id="2"><w:r><w:t>in.</w:t></w:r></w:ins>'
        '<w:r><w:commentReference w:id="0"/></w:r></w:p>'
        "<w:p><w:r><w:t>Tom: Why?</w:t></w:r></w:p>",
        comment="Slower.",
    )
    found = list_rows(read("a.docx", document))
    assert found == [("Mara", "Come in."), ("note", "Slower."), ("Tom", "Why?")]


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TYPES = """<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/word/document.xml"
 ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>
</Types>"""
RELATIONS = """<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Target="{}" Type="http://schemas.openxmlformats.org/{}"/></Relationships>"""
OFFICE = "officeDocument/2006/relationships/"


def pack_docx(body, comment=None, before=""):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr(
            "_rels/.rels", RELATIONS.format("word/document.xml", f"{OFFICE}officeDocument")
        )
        archive.writestr(
            "word/document.xml",
            f"{before}<w:document {W}><w:body>{body}</w:body></w:document>",
        )
        if comment:
            archive.writestr(
                "word/_rels/document.xml.rels",
                RELATIONS.format("comments.xml", f"{OFFICE}comments"),
            )
            archive.writestr(
                "word/comments.xml",
                f'<w:comments {W}><w:comment w:id="0" w:author="Reader" w:initials="R"><w:p><w:r>'
                f"<w:t>{comment}</w:t></w:r></w:p></w:comment></w:comments>",
            )
    return written.getvalue()


def refused(data, name="a.docx"):
    with pytest.raises(ScriptError) as found:
        import_dialog(data, name, ImportOptions())
    return str(found.value)


ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "'
    + 60 * "Mara: Hello. "
    + '">'
    + "".join(f'<!ENTITY {b} "{10 * f"&{a};"}">' for a, b in ("ab", "bc", "cd", "de", "ef", "fg"))
    + "]>"
)


def test_entities_are_refused_and_no_file_is_read_by_one():
    bomb = f'<?xml version="1.0"?>{ENTITIES}<FinalDraft><Content>&g;</Content></FinalDraft>'
    outside = (
        '<?xml version="1.0"?><!DOCTYPE tt [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        '<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="0s" end="1s">&f;</p></div>'
        "</body></tt>"
    )
    for text, name in ((bomb, "a.fdx"), (outside, "a.ttml")):
        assert find_document_kind(text.encode()) == name[2:]
        assert "entities" in refused(text.encode(), name)
    packed = pack_docx("<w:p><w:r><w:t>&g;</w:t></w:r></w:p>", before=ENTITIES)
    assert "entities" in refused(packed)


def test_what_would_fill_the_memory_is_refused_before_it_is_unpacked():
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"")
        with archive.open("word/media/a.bin", "w") as member:
            for _ in range(210):
                member.write(bytes(1_000_000))
    assert "unpacked" in refused(bomb.getvalue())
    assert "20 MB" in refused(b"%PDF-1.7" + bytes(20_000_001), "a.pdf")


def test_a_pdf_without_text_or_behind_a_password_says_so():
    empty = pypdfium2.PdfDocument.new()
    empty.new_page(300, 300)
    written = io.BytesIO()
    empty.save(written)
    assert "OCR" in refused(written.getvalue(), "a.pdf")
    locked = (DOCUMENTS / "locked.pdf").read_bytes()
    assert "password" in refused(locked, "locked.pdf")


@pytest.mark.slow
def test_a_damaged_document_is_refused_or_read_in_part():
    """Cut off, and with bytes changed: one sentence or a dialog, whatever the library raises."""
    chance = random.Random(29)
    for path in sorted(DOCUMENTS.iterdir()):
        whole = path.read_bytes()
        cut = whole[: chance.randrange(len(whole) // 4, len(whole))]
        flipped = bytearray(whole)
        for _ in range(20):
            flipped[chance.randrange(8, len(whole))] ^= 1 << chance.randrange(8)
        for data in (cut, bytes(flipped)):
            said = None
            try:
                said = f"{path.name}: {len(import_dialog(data, path.name).dialog)} rows"
            except ScriptError as error:
                said = str(error)
            assert path.name in said


def test_other_archives_and_old_documents_are_named():
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("notes.bin", bytes(10))
    assert "archive" in refused(other.getvalue(), "a.zip")
    assert "old Office" in refused(b"\xd0\xcf\x11\xe0" + bytes(600), "a.doc")
