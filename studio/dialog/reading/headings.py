"""What the columns of tables and the keys of JSON are called, in the languages of their writers."""

from __future__ import annotations

import unicodedata
from collections.abc import Container
from enum import StrEnum

import regex

from studio.dialog.directions import word_set
from studio.dialog.model import LANGUAGE_CODES, code_of
from studio.storage.text_cache import text_cache


class Role(StrEnum):
    """The meaning of a column; the value is the heading written for it."""

    SPEAKER = "speaker"
    TEXT = "text"
    LANGUAGE = "language"
    SEED = "seed"
    PAUSE = "pause"
    PAUSE_BEFORE = "pause before"
    AUDIO = "audio"
    UNSPOKEN = "unspoken"
    ID = "id"
    DIRECTION = "direction"
    FILE = "file"
    """In sheets for voice actors the name of the recording to be made; alone in a row, audio."""
    MAX_DURATION = "max duration"
    START = "start"
    END = "end"
    IGNORED = ""


PARAM_PREFIX = "param:"
"""Prefix of a parameter whose name would be taken for another heading."""

# Of two headings for one role, the one listed first wins.
_HEADINGS = {
    Role.SPEAKER: "speaker speakername speakerid speakerlabel character charactername "
    "characterid char name role actor voice who person talent cast voiceactor "
    "sprecher sprecherin figur rolle charakter wer "
    "personnage locuteur rôle nom qui comédien "
    "personaje hablante locutor nombre quién voz actriz "
    "personagem falante nome quem personaggio "
    "персонаж роль говорящий спикер имя герой кто "
    "角色 角色名 人物 说话人 說話人 說話者 演员 演員 姓名 配音 "
    "話者 キャラクター キャラクター名 キャラ 役名 名前 登場人物 "
    "वक्ता पात्र किरदार المتحدث الشخصية الدور বক্তা চরিত্র کردار مقرر pembicara karakter tokoh peran "
    "postać osoba konuşmacı 화자 인물",
    Role.TEXT: "text spokentext dialogue dialog line lines sentence utterance speech words says "
    "content transcript caption subtitle script quote copy "
    "satz dialogtext dialogzeile zeile texte réplique phrase ligne texto diálogo línea frase "
    "parlamento guion fala linha testo battuta реплика текст фраза диалог "
    "台词 台詞 文本 內容 内容 对白 對白 对话 對話 セリフ せりふ テキスト 本文 "
    "संवाद पाठ النص الحوار সংলাপ পাঠ্য مکالمہ متن teks dialogo kwestia tekst replik metin 대사 텍스트",
    Role.LANGUAGE: "language lang locale languagecode sprache langue idioma lingua язык 语言 語言 "
    "言語 भाषा اللغة ভাষা زبان bahasa",
    Role.SEED: "seed",
    Role.PAUSE: "pause pauseafter silence silenceafter gap wait delay",
    Role.PAUSE_BEFORE: "pausebefore silencebefore",
    Role.UNSPOKEN: "unspoken",
    Role.AUDIO: "audio audiofile audiopath path",
    Role.FILE: "file filename wav wavfile voicefile vofile outputfile datei dateiname fichier "
    "nomdufichier archivo nombredearchivo arquivo nomedoarquivo файл имяфайла 文件 文件名 檔名 "
    "ファイル ファイル名",
    Role.MAX_DURATION: "duration length dauer durée duración duração durata длительность "
    "maxduration maximumduration durationlimit maxlength maxseconds timelimit 时长 時長 長さ 尺",
    Role.ID: "id lineid stringid textid dialogueid dialogid key stringkey kennung schlüssel "
    "identifiant identificador clave chave идентификатор ключ 编号 編號 識別子",
    Role.DIRECTION: "direction directions delivery emotion acting actingnotes performancenotes "
    "moodnotes emotiontone how tone regie regieanweisung gefühl didascalie émotion indication "
    "acotación emoción emoção rubrica эмоция ремарка интонация 情绪 情緒 语气 語氣 感情 演技",
    Role.START: "start starttime begin beginn anfang début inicio início начало 开始 開始",
    Role.END: "end endtime ende fin fim конец 结束 終了",
    Role.IGNORED: "no nr index number linenumber lineno row type "
    "time timecode take takes next nextid nextline nummer numéro número номер 序号 番号",
}
_NOTES = word_set(
    "note notes comment comments remark remarks anmerkung anmerkungen kommentar notiz notizen"
    " commentaire commentaires remarque nota notas comentario comentarios observações заметка"
    " заметки примечание 备注 备註 注释 註釋 備考 メモ"
)
_FILLERS = word_set("vo source original final spoken recorded full the")
"""What stands before a heading, as in “VO text”, and doesn't change what it heads."""
_ROLES = {
    heading: (role, rank)
    for role, headings in _HEADINGS.items()
    for rank, heading in enumerate(headings.split())
}
_LANGUAGE = regex.compile(
    rf"(?:{'|'.join(LANGUAGE_CODES)})(?:[-_][A-Za-z]{{2,4}})?", regex.IGNORECASE
)
_NOT_IN_WORDS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_PART = regex.compile(r"[\p{L}\p{M}\p{N}]+")
MOST_COLUMNS = 1_000
_UNIT = regex.compile(
    r"(?<=pause|after|before|silence|gap|delay|duration|length|limit)(m?s|(?:milli)?sec(?:onds?)?)$"
)


@text_cache  # asked for each key of each item
def _find(heading: str) -> tuple[Role, int] | None:
    """The role of a heading, and its place among those of the role."""
    if (found := _ROLES.get(split_unit(heading)[0])) or " " not in heading:
        return found
    words = [_ROLES.get(word) for word in _PART.findall(heading.casefold()) if word not in _FILLERS]
    roles = {word[0] for word in words if word} if all(words) else set()
    return words[0] if len(roles) == 1 and roles <= {Role.SPEAKER, Role.TEXT} else None


def role_of(heading: str) -> Role | None:
    """The role of a heading, whatever its spaces and case; None for an unknown one."""
    found = _find(heading)
    return found[0] if found else None


def rank_of(heading: str) -> int:
    """The place of a heading among those of its role; the best is 0."""
    found = _find(heading)
    return found[1] if found else 0


def is_noted(heading: str) -> bool:
    """Whether a heading, such as “Notes” or “comment”, is that of remarks about a line."""
    return split_unit(heading)[0] in _NOTES


def assign(headings: list[str], numeric: Container[int] = ()) -> dict[Role, int]:
    """The column of each role; of two candidates, the one with the better heading.

    Args:
        headings: Of all columns; what stands beyond the 1,000th has no role.
        numeric: Columns that hold nothing but numbers, and so never the text.
    """
    headings = headings[:MOST_COLUMNS]
    best: dict[Role, tuple[int, int]] = {}
    for column, heading in enumerate(headings):
        if found := _find(heading):
            role, rank = found
            if role is not Role.TEXT or column not in numeric:
                best[role] = min(best.get(role, (rank, column)), (rank, column))
    best.pop(Role.IGNORED, None)
    roles = {role: column for role, (_, column) in best.items()}
    if Role.TEXT not in roles and Role.SPEAKER in roles and (texts := list_languages(headings)):
        roles[Role.TEXT] = min(texts)
    return roles


def list_languages(headings: list[str]) -> dict[int, str]:
    """The languages that columns are headed with, as those of translations, by column."""
    found = {column: heading for column, heading in enumerate(headings) if is_language(heading)}
    return {column: code_of(heading.strip()) for column, heading in found.items()}


def is_language(heading: str) -> bool:
    """Whether a column is headed with a language, as one of translations is."""
    return _LANGUAGE.fullmatch(code_of(heading.strip())) is not None


def plain_heading(heading: str) -> str:
    """A heading without signs, white space and capitals."""
    return _NOT_IN_WORDS.sub("", unicodedata.normalize("NFC", heading).casefold())


@text_cache  # asked several times for each key of each item
def split_unit(heading: str) -> tuple[str, str]:
    """A heading in its simplest form, and the unit at its end."""
    plain = plain_heading(heading)
    unit = _UNIT.search(plain)
    return (plain[: unit.start()], unit[1]) if unit else (plain, "")
