"""Prose with dialogue: the pieces are the text, quotations are found as ten languages mark them."""

from __future__ import annotations

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.formats.dialog_file import ImportOptions, read_dialog_text
from studio.dialog.model import Speech
from studio.dialog.prose.pieces import FIRST_PERSON, PieceKind, Pieces, ProsePiece
from studio.dialog.prose.speakers import split_prose

CHAPTER = """Hester Voss put the lamp down.

“You are late,” said Hester Voss.

“The ferry was,” Mr. Wick answered. He shook out his coat. “It always is.”

“It always was,” said Hester, “when my father ran it.”

“And now?”

“Now it is you who runs it.”

“Then I shall be early tomorrow,” said Wick.
"""

BOOKS = {
    # Twain, Tom Sawyer
    "en": (
        "“There! I might ’a’ thought of that closet,” said Aunt Polly. “What you been doing in"
        " there?”\n\n“Nothing,” said Tom.",
        [("“There!", "Aunt Polly"), ("“What you", "Aunt Polly"), ("“Nothing,”", "Tom")],
    ),
    # Carroll, Through the Looking-Glass, as printed in London
    "en-GB": (
        "'I shouldn't know you again if we did meet,' Humpty Dumpty replied in a discontented tone,"
        " giving her one of his fingers to shake; 'you're so exactly like other people.'\n\n'The"
        " face is what one goes by, generally,' Alice remarked in a thoughtful tone.",
        [("'I shouldn't", "Humpty Dumpty"), ("'you're so", "Humpty Dumpty"), ("'The", "Alice")],
    ),
    # Kafka, Die Verwandlung
    "de": (
        "»Gregor«, rief die Mutter, »es ist dreiviertel sieben. Wolltest du nicht wegfahren?«\n\n"
        "»Ja, ja, danke, Mutter«, sagte Gregor, »ich stehe schon auf.«",
        [
            ("»Gregor«", "die Mutter"),
            ("»es ist", "die Mutter"),
            ("»Ja,", "Gregor"),
            ("»ich stehe", "Gregor"),
        ],
    ),
    # Fontane, Effi Briest
    "de-AT": (
        "„Immer am Trapez, immer Tochter der Luft“, sagte Frau von Briest.\n\n„Vielleicht, Mama“,"
        " antwortete Effi. „Aber wenn es so wäre, wer wäre schuld?“",
        [("„Immer", "Frau von Briest"), ("„Vielleicht", "Effi"), ("„Aber", "Effi")],
    ),
    # Voltaire, Candide
    "fr": (
        "« Qu’est-ce qu’optimisme ? disait Cacambo.\n\n— Hélas ! dit Candide, c’est la rage de"
        " soutenir que tout est bien quand on est mal. »\n\n— Vous avez raison, dit Pangloss.",
        [
            ("« Qu’est-ce", "Cacambo"),
            ("— Hélas", "Candide"),
            ("c’est la rage", "Candide"),
            ("— Vous avez", "Pangloss"),
        ],
    ),
    # Cervantes, Don Quijote
    "es": (
        "—¿Qué gigantes? —dijo Sancho Panza.\n\n—Aquellos que allí ves —respondió su amo— de los"
        " brazos largos, que los suelen tener algunos de casi dos leguas.",
        [("—¿Qué", "Sancho Panza"), ("—Aquellos", "su amo"), ("— de los", "su amo")],
    ),
    # Collodi, Pinocchio
    "it": (
        "— Buon giorno, mastr’Antonio, — disse Geppetto. — Che cosa fate costì per terra?\n\n"
        "— Insegno l’abbaco alle formicole, — rispose mastro Ciliegia.",
        [("— Buon", "Geppetto"), ("— Che", "Geppetto"), ("— Insegno", "Ciliegia")],
    ),
    # Machado de Assis, Dom Casmurro
    "pt": (
        "— Está bom, acabou, disse eu finalmente.\n\n— Continue, disse Capitu.\n\n— Já acabei,"
        " murmurou José Dias.",
        [("— Está", FIRST_PERSON), ("— Continue", "Capitu"), ("— Já", "José Dias")],
    ),
    # Tolstoy, War and Peace
    "ru": (
        "— Ah! chère! — сказал граф. — Что это?\n\n— Мне нужно сказать вам, — отвечала Наташа, — я"
        " не могу.\n\n«Что это?» — подумала она.",
        [("— Ah!", "граф"), ("— Что", "граф"), ("— Мне", "Наташа"), ("— я", "Наташа")],
    ),
    # Prus, Lalka
    "pl": (
        "— Cóż tam słychać? — spytał Wokulski.\n\n— Nic nowego — odparł Rzecki. — Wszystko po"
        " staremu.",
        [("— Cóż", "Wokulski"), ("— Nic", "Rzecki"), ("— Wszystko", "Rzecki")],
    ),
    # Sōseki, Sanshirō
    "ja": (
        "「どこの馬鹿だい」と与次郎が聞いた。三四郎は黙っていた。\n\n「先生はどうです」と三四郎が言った。",
        [("「どこ", "与次郎"), ("「先生", "三四郎")],
    ),
    # Cao Xueqin, Dream of the Red Chamber
    "zh": (
        "宝玉笑道：“我也不过偶尔做一回。”\n\n“你又来了，”林黛玉说道，“我才不信呢。”",
        [("“我也", "宝玉"), ("“你又", "林黛玉"), ("“我才", "林黛玉")],
    ),
}


def said(text, language=None):
    return [(one.text, one.speaker) for one in split_prose(text, language).quotations]


def quoted(text):
    return [words for words, _ in said(text)]


def lines_of(text, **options):
    dialog = read_dialog_text(text, ImportOptions(**options)).dialog
    return [(line.speaker, line.text) for line in dialog if isinstance(line, Speech)]


@pytest.mark.parametrize("language", BOOKS)
def test_quotations_of_ten_languages(language):
    text, expected = BOOKS[language]
    found = said(text)
    begun = [
        next((pair for pair in found if pair[0].startswith(start)), None) for start, _ in expected
    ]
    assert [pair and pair[1] for pair in begun] == [speaker for _, speaker in expected]


@given(st.text(alphabet="ab A'\"“”‘’«»„—-\n.,!?「」 said", max_size=200))
def test_pieces_are_the_text(text):
    pieces = split_prose(text)
    assert "".join(one.text for one in pieces.pieces) == text
    assert all(text[one.start : one.end] == one.text for one in pieces.pieces)


@given(st.text(max_size=300), st.sampled_from(["en", "fr", "ja", "xx", None]))
def test_pieces_are_any_text(text, language):
    assert "".join(one.text for one in split_prose(text, language).pieces) == text


@pytest.mark.parametrize(
    "pieces",
    [
        (ProsePiece(PieceKind.NARRATION, "ab", 0, 2),),
        (ProsePiece(PieceKind.NARRATION, "abd", 0, 3),),
        (ProsePiece(PieceKind.NARRATION, "a", 0, 1), ProsePiece(PieceKind.NARRATION, "c", 2, 3)),
        (),
    ],
)
def test_pieces_that_lose_text_cannot_be_built(pieces):
    with pytest.raises(ValueError, match="pieces"):
        Pieces("abc", pieces)


def test_quotations_inside_of_others():
    text = "“I heard her say ‘never,’ and go,” said Ann.\n\n“Well,” said Ben."
    assert said(text) == [("“I heard her say ‘never,’ and go,”", "Ann"), ("“Well,”", "Ben")]


def test_a_quotation_over_paragraphs():
    text = '"One thing more," said Ann. "Look.\n\n"And this.\n\n"Done," she said.\n\nBen left.'
    assert {speaker for _, speaker in said(text)} == {"Ann"}
    assert len(said(text)) == 4


@pytest.mark.parametrize("curly", [True, False])
def test_apostrophes_end_no_quotation(curly):
    text = "'The dogs' tails weren't 'alf wet, 'twas nothin',' said Ann.\n\n'Boys will,' said Ben."
    if curly:
        text = (
            "‘The dogs’ tails weren’t ’alf wet, ’twas nothin’,’ said Ann.\n\n‘Boys will,’ said Ben."
        )
    assert [speaker for _, speaker in said(text)] == ["Ann", "Ben"]


def test_feet_and_inches_end_no_quotation():
    text = '"He was 6\' 2" tall," said Ann.\n\nThe 12" record lay there.\n\n"No," said Ben.'
    assert quoted(text) == ['"He was 6\' 2" tall,"', '"No,"']


def test_words_that_are_set_apart_are_no_quotations():
    text = "The so-called “experts” of “The Daily Globe” met.\n\n“Enough,” said Ann."
    assert quoted(text) == ["“Enough,”"]


def test_a_dash_within_what_is_said():
    text = "—Se fue —dijo Ana—, y no volvió.\n\n—Y tú —nadie más—, ¿qué hiciste?"
    assert quoted(text)[0] == "—Se fue "
    assert quoted(text)[-1] == "—Y tú —nadie más—, ¿qué hiciste?"


def test_a_pronoun_is_who_was_named_and_not_who_was_spoken_to():
    text = (
        "Mr. Darcy bowed to Mrs. Long.\n\n“You are kind, Mrs. Long,” he said.\n\n“I am,” she said."
    )
    assert [speaker for _, speaker in said(text)] == ["Mr. Darcy", "Mrs. Long"]


def test_names_with_a_title_and_without_are_one_person():
    assert {speaker for _, speaker in said(CHAPTER)} == {"Hester Voss", "Mr. Wick"}
    bennets = "“No,” said Mr. Bennet.\n\n“Yes,” said Mrs. Bennet.\n\n“Oh,” said Mr. Bennet."
    assert [one for _, one in said(bennets)] == ["Mr. Bennet", "Mrs. Bennet", "Mr. Bennet"]


def test_turns_are_less_sure_than_tags():
    by_words = {one.text: one.confidence for one in split_prose(CHAPTER).quotations}
    assert by_words["“And now?”"] < by_words["“The ferry was,”"]


def test_quotations_become_the_lines_of_who_says_them():
    lines = lines_of(CHAPTER)
    assert ("Hester Voss", "“You are late,”") in lines
    assert ("Narrator", "said Hester Voss.") in lines
    assert ("Mr. Wick", "“And now?”") in lines
    words = " ".join(text for _, text in lines)
    assert "".join(words.split()) == "".join(CHAPTER.split())


def test_notices_name_how_many_and_which_are_guessed():
    read = read_dialog_text(CHAPTER)
    messages = {one.line_number: one.message for one in read.notices}
    assert "8 quotations, 2 people" in messages[1]
    assert "guessed" in messages[9]
    assert read.quoted == 8


def test_who_is_unknown_is_read_by_the_narrator_with_a_notice():
    text = CHAPTER + "\nThe door stood open for a while, and the rain came in. " * 12
    text += "\n\n“Who is there?”\n"
    read = read_dialog_text(text)
    assert lines_of(text)[-1] == ("Narrator", "“Who is there?”")
    assert any("Nothing says who" in one.message for one in read.notices)
    unsure = [one for one in read.dialog if isinstance(one, Speech) and one.params.get("unsure")]
    assert unsure
    assert {one.speaker for one in unsure} == {"Narrator"}


def test_a_narrator_reads_all_of_it():
    assert {name for name, _ in lines_of(CHAPTER, narrator="Vera")} == {"Vera"}
    assert len(lines_of(CHAPTER, narrator="Vera")) == 7


@pytest.mark.parametrize(
    "text",
    [
        "It was late. Nobody spoke.\n\nThe rain went on all night.",
        "Dear Ann,\n\nthe house is sold. “Good riddance,” said Ben.\n\nYours, Carl",
        "The “expert” called it “a blow” to “growth”.\n\nShares fell.\n\nThe “crisis” is over.",
    ],
    ids=["narration", "letter", "article"],
)
def test_text_with_few_quotations_is_one_narrators(text):
    assert {name for name, _ in lines_of(text)} == {"Narrator"}
    assert read_dialog_text(text).quoted == 0


HALF_KNOWN = """"Eh!" she said, "but you are like an old woman.  Don't you care?"

"It doesn't matter" said Mary, "whether I care or not."

"You are right enough there," said Mrs. Medlock.  "It doesn't. What
you're to be kept at Misselthwaite Manor for I don't know, unless
because it's the easiest way.  He's not going to trouble himself about
you, that's sure and certain.  He never troubles himself about no one."

She stopped herself as if she had just remembered something in time.

"He's got a crooked back," she said.  "That set him wrong.  He was a
sour young man and got no good of all his money and big place till he
was married."

Mary's eyes turned toward her in spite of her intention not to seem to
care.  She had never thought of the hunchback's being married and she
was a trifle surprised.  Mrs. Medlock saw this, and as she was a
talkative woman she continued with more interest.  This was one way of
passing some of the time, at any rate."""  # Frances Hodgson Burnett, The Secret Garden, 1911


def test_names_are_enough_where_half_of_the_speakers_are_known():
    lines = lines_of(HALF_KNOWN)
    assert ("Mary", '"It doesn\'t matter"') in lines
    assert ("Mrs. Medlock", '"You are right enough there,"') in lines
    assert ("Narrator", '"Eh!"') in lines


def test_a_first_person_is_the_narrator():
    text = "“Go,” I said.\n\n“No,” said Ann.\n\n“Why?” I asked.\n\n“It rains,” said Ann.\n\n"
    lines = lines_of(text * 2)
    assert ("Narrator", "“Go,”") in lines
    assert ("Ann", "“No,”") in lines


def test_a_chinese_novel_is_no_script():
    text = "那天下了大雨。\n\n宝玉笑道：“我也不过偶尔做一回。”\n\n黛玉道：“你又来了。”\n\n"
    assert {name for name, _ in lines_of(text * 3)} == {"Narrator", "宝玉", "黛玉"}


def test_time_is_linear():
    assert_linear(lambda n: split_prose(CHAPTER * n), 800)


@pytest.mark.parametrize(
    "unit",
    ["“", '"', "'a ", "— ", "«", "“a,” said ", "Mr. ", "A" * 50 + " ", "said Mr. Ann ", "「"],
)
def test_a_sign_that_is_repeated_takes_linear_time(unit):
    assert_linear(lambda chars: split_prose(unit * (chars // len(unit)), "en"), 100_000)


def test_an_empty_text_has_no_pieces():
    assert split_prose("").pieces == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("“Has it left?” asked Mira.\n\n“Just now,” said Tom.\n", ["Mira", "Tom"]),
        ("„Ist sie weg?“, fragte Mira.\n\n„Eben erst“, sagte Tom.\n", ["Mira", "Tom"]),
        ("— Elle est partie ? demanda Mira.\n\n— À l’instant, dit Tom.\n", ["Mira", "Tom"]),
        ("It was wet. The road went on and on, past the mill.\n\n“Has it left?” asked Mira.\n", []),
    ],
)
def test_a_few_quotations_are_enough_where_each_is_somebodys(text, said):
    lines = read_dialog_text(text).dialog
    names = [line.speaker for line in lines if line.speaker != "Narrator"]
    assert names == said
