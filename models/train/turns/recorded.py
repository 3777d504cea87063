"""Speech of voices that were made from recordings of people, by festival and flite of Debian: WAV files for turns.data. espeak-ng computes its
sounds; people hold their vowels longer and steadier, and a detector that has heard espeak-ng alone takes such a vowel for an instrument.

  apt-get install festival flite festvox-czech-dita festvox-czech-krb festvox-czech-machac festvox-czech-ph festvox-kallpc16k festvox-kdlpc16k \\
    festvox-suopuhe-lj festvox-suopuhe-mv festvox-italp16k festvox-itapc16k festvox-us-slt-hts festvox-ca-ona-hts festvox-ru
  python3 -m turns.recorded work/recorded --utterances 1500
"""
import argparse
import random
import subprocess
import tempfile
from pathlib import Path

from common.sentences import Sentences

FESTIVAL = """czech_dita czech_krb czech_machac czech_ph kal_diphone ked_diphone hy_fi_mv_diphone suo_fi_lj_diphone lp_diphone pc_diphone
 cmu_us_slt_arctic_hts upc_ca_ona_hts""".split()
FLITE = "awb rms slt kal16".split()
# For the voice that reads no Latin letters.
RUSSIAN = """Доброе утро, как вы себя чувствуете сегодня?|Завтра мы поедем в город на поезде.|Да.|Нет, спасибо.|Сколько стоит этот хлеб?|Позвоните мне, пожалуйста, после обеда.
Я не знаю, где мои ключи.|Вчера шёл сильный дождь, и мы остались дома.|Моя сестра учится в университете.|Откройте окно, здесь очень жарко.|Хорошо, я подожду.|Один, два, три, четыре, пять.
Когда начинается фильм?|Эта дорога ведёт к старой мельнице у реки.|Мне нужна комната на две ночи.|Поставь чайник, скоро придут гости.""".replace("\n", "|").split("|")
OTHER_SCRIPTS = {"msu_ru_nsh_clunits": RUSSIAN}


def stretch_of(r):
    """How much longer than usual each sound lasts. Slow speech has the steadiest vowels."""
    return round(r.choice([r.uniform(0.8, 1.3), r.uniform(1.2, 2.2)]), 2)


def by_festival(voice, texts, folder, r):
    lines = [f"(voice_{voice})"]
    for i, text in enumerate(texts):
        quoted = text.replace("\\", "").replace('"', "")
        lines.append(f"(Parameter.set 'Duration_Stretch {stretch_of(r)})")
        lines.append(f'(set! u (Utterance Text "{quoted}"))')
        lines.append(f"(unwind-protect (begin (utt.synth u) (utt.save.wave u \"{folder / f'{voice}-{i}.wav'}\" 'riff)) nil)")
    with tempfile.NamedTemporaryFile("w", suffix=".scm") as script:
        script.write("\n".join(lines))
        script.flush()
        subprocess.run(["festival", "-b", script.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def by_flite(voice, texts, folder, r):
    pitch = 160 if voice == "slt" else 105
    for i, text in enumerate(texts):
        settings = ["--setf", f"duration_stretch={stretch_of(r)}", "--setf", f"int_f0_target_mean={pitch * r.uniform(0.8, 1.3):.0f}"]
        subprocess.run(["flite", "-voice", voice, *settings, "-t", text, "-o", str(folder / f"{voice}-{i}.wav")], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--utterances", type=int, default=1500, help="of all voices together")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    r, sentences = random.Random(options.seed), Sentences(options.seed, "training")
    each = options.utterances // (len(FESTIVAL) + len(FLITE) + len(OTHER_SCRIPTS))

    def text():
        said = sentences.draw()
        words = said.split()
        # A third are a word or two, as answers often are.
        return " ".join(words[: r.choice([1, 1, 2])]) if r.random() < 0.33 else said

    for voice in FLITE:
        by_flite(voice, [text() for _ in range(each)], options.folder, r)
    for voice in FESTIVAL:
        by_festival(voice, [text() for _ in range(each)], options.folder, r)
    for voice, lines in OTHER_SCRIPTS.items():
        by_festival(voice, [r.choice(lines) for _ in range(each)], options.folder, r)
    made = sorted({path.stem.rsplit("-", 1)[0] for path in options.folder.glob("*.wav")})
    print(f"{len(list(options.folder.glob('*.wav')))} utterances of {len(made)} voices: {', '.join(made)}")


if __name__ == "__main__":
    main()
