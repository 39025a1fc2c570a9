"""Texts of many languages, and the draft voice that speaks them, to try what listens to speech."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.voices.speaker import Voice

SENTENCES = {
    "en": ("Yes.", "The lamp is still burning, and nobody has climbed the stairs since Tuesday."),
    "de": ("Ja.", "Die Lampe brennt noch, und seit Dienstag ist niemand die Treppe gestiegen."),
    "fr": ("Oui.", "La lampe brûle encore, et personne n’est monté depuis mardi."),
    "es": ("Sí.", "La lámpara sigue encendida y nadie ha subido la escalera desde el martes."),
    "it": ("Sì.", "La lampada è ancora accesa, e nessuno è salito da martedì."),
    "pt": ("Sim.", "A lâmpada ainda está acesa, e ninguém subiu a escada desde terça-feira."),
    "nl": ("Ja.", "De lamp brandt nog, en sinds dinsdag is niemand naar boven gegaan."),
    "sv": ("Ja.", "Lampan brinner fortfarande, och ingen har gått i trappan sedan i tisdags."),
    "pl": ("Tak.", "Lampa jeszcze się pali, a od wtorku nikt nie wchodził po schodach."),
    "cs": ("Ano.", "Lampa ještě svítí a od úterý nikdo po schodech nešel."),
    "ru": ("Да.", "Лампа всё ещё горит, и никто не поднимался по лестнице со вторника."),
    "uk": ("Так.", "Лампа ще горить, і ніхто не піднімався сходами від вівторка."),
    "el": ("Ναι.", "Η λάμπα καίει ακόμα, και κανείς δεν ανέβηκε τη σκάλα από την Τρίτη."),
    "tr": ("Evet.", "Lamba hâlâ yanıyor ve salıdan beri kimse merdiveni çıkmadı."),
    "fi": ("Kyllä.", "Lamppu palaa yhä, eikä kukaan ole kiivennyt portaita tiistain jälkeen."),
    "hu": ("Igen.", "A lámpa még ég, és kedd óta senki sem ment fel a lépcsőn."),
    "ro": ("Da.", "Lampa arde încă și nimeni nu a mai urcat scările de marți."),
    "ar": ("نعم.", "المصباح لا يزال مضاء، ولم يصعد أحد الدرج منذ يوم الثلاثاء."),
    "he": ("כן.", "המנורה עדיין דולקת, ואיש לא עלה במדרגות מאז יום שלישי."),
    "fa": ("بله.", "چراغ هنوز روشن است و از سه‌شنبه کسی از پله‌ها بالا نرفته است."),
    "hi": ("हाँ।", "दीपक अभी भी जल रहा है, और मंगलवार से कोई सीढ़ियाँ नहीं चढ़ा।"),
    "bn": ("হ্যাঁ।", "বাতিটা এখনও জ্বলছে, আর মঙ্গলবার থেকে কেউ সিঁড়ি বেয়ে ওঠেনি।"),
    "ta": ("ஆம்.", "விளக்கு இன்னும் எரிகிறது, செவ்வாய் முதல் யாரும் படி ஏறவில்லை."),
    "ja": ("はい。", "ランプは まだ ついていて、かようびから だれも かいだんを のぼっていません。"),
    "zh": ("是。", "灯还亮着，从星期二起就没有人上过楼梯。"),
    "ko": ("네.", "등불이 아직 켜져 있고, 화요일부터 아무도 계단을 오르지 않았다."),
    "vi": ("Vâng.", "Đèn vẫn còn sáng, và từ thứ Ba không có ai lên cầu thang."),
    "id": ("Ya.", "Lampu masih menyala, dan tak seorang pun naik tangga sejak Selasa."),
    "sw": ("Ndiyo.", "Taa bado inawaka, na hakuna mtu aliyepanda ngazi tangu Jumanne."),
    "ka": ("კი.", "ლამპა ისევ ანთია და სამშაბათის შემდეგ კიბეზე არავინ ასულა."),
    "is": ("Já.", "Lampinn logar enn, og enginn hefur gengið upp stigann síðan á þriðjudag."),
}
"""By language, one word and one sentence."""

HARD = (
    "No!",
    "Oh … well — I suppose so.",
    "Call 0176 5550 1234 at 18:45.",
    "It cost $1,999.99, that is 35 % more than in 1987.",
    "2,222,222 of 7,777,777.",
    "The BBC, the NASA and the U.S.A.",
    "Ha ha ha ha ha ha!",
    "Row, row, row your boat, gently down the stream.",
    "Seventy-six, seventy-seven, seventy-eight, seventy-nine.",
    "How much wood would a woodchuck chuck if a woodchuck could chuck wood?",
    "She sells sea shells by the sea shore; six sick sheep slept.",
    "I know. I know! I know, all right?",
    "Tick, tock. Tick, tock. Tick, tock.",
    "Mmm. Hmm? Shh!",
    "Supercalifragilisticexpialidocious",
    "www.example.org/page?id=12&lang=en",
    "Wait... what? Nooooooo!",
    "I left the letters on the table; you took them, didn’t you? Nobody else has a key, nobody "
    "else was in the house, and nobody else knew what was written there. So tell me, before the "
    "others come down: where are they now, and who has read them since the night of the storm?",
)
"""English texts on which lengths and likenesses are hard to judge."""

KANJI = "火曜日から誰も階段を上っていません。"
"""For each of its characters the draft voice says “Chinese letter”."""

NATIVE_LONG = {
    "zh": "我把信放在桌子上，是你拿走的，对不对？别人没有钥匙，别人不在屋里，"
    "也没有人知道信里写了什么。"
    "所以在大家下楼之前告诉我，信现在在哪里，自从那个暴风雨的晚上以后，还有谁读过它们？",
    "ja": "てがみは つくえの うえに おいておきました。あなたが もっていったのでしょう？"
    "ほかの ひとは かぎを もっていないし、いえにも いなかったし、なにも しりませんでした。"
    "みんなが おりてくる まえに おしえてください。いま どこに ありますか。",
    "ar": "تركت الرسائل على الطاولة، وأنت أخذتها، أليس كذلك؟ لا أحد غيرك يملك المفتاح، "
    "ولم يكن أحد في البيت، ولم يعرف أحد ما كتب فيها. "
    "فأخبرني قبل أن ينزل الآخرون: أين هي الآن ومن قرأها؟",
}


@dataclass(frozen=True)
class Line:
    """A text as the draft voice spoke it."""

    text: str
    language: str
    speed: float
    clip: Clip


class Reader:
    """Speaks with the draft voice."""

    def __init__(self, backend: DraftBackend) -> None:
        self._backend = backend

    def line(self, text: str, language: str, speed: float = 1.0, name: str = "Ida") -> Line:
        request = SpeechRequest(
            text=text,
            conditioning=self._backend.condition(Voice(name)),
            language=language,
            params={"speed": speed},
        )
        samples = np.concatenate(list(self._backend.speak(request)))
        return Line(text, language, speed, Clip(samples))

    def lines(self, speeds: tuple[float, ...], names: tuple[str, ...] = ("Ida",)) -> Iterator[Line]:
        """Every text at every speed in every voice."""
        for name in names:
            for speed in speeds:
                for text, language in texts():
                    yield self.line(text, language, speed, name)


def texts() -> Iterator[tuple[str, str]]:
    """Every text with its language."""
    for language, sentences in SENTENCES.items():
        for sentence in sentences:
            yield sentence, language
    for text in HARD:
        yield text, "en"
    for language, text in NATIVE_LONG.items():
        yield text, language


def at(samples: np.ndarray) -> Clip:
    """Samples as a clip."""
    return Clip(np.ascontiguousarray(samples, dtype=np.float32), STUDIO_RATE_HZ)
