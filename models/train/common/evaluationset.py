"""Makes the evaluation set in models/eval that `npm run models:eval` listens to: speech of trained and of never trained voices, and reference
clips of speakers that the style encoder never heard. `languages` is the same for the other languages of the multilingual transcription model, and
`unheard` has sentences with words that no training had, both of trained voices. Every sentence is on the evaluation side of the split. Needs ffmpeg
with libopus.

  python3 -m common.evaluationset ../eval
"""
import argparse
import json
import random
import subprocess
from pathlib import Path

import numpy as np

from common import espeak
from common.grammar import Grammar
from common.sentences import Sentences
from common.sound import resample
from common.split import is_evaluation
from ears.features import LANGUAGES, RATE_HZ
from ears.speakers import ACCENTS, ENGLISH_TRAINED, UNSEEN, UNSEEN_VARIANTS, say_with_espeak, voices_of
from voices.speakers import UNSEEN as UNSEEN_SPEAKERS

SEED = 20260122
ROUND_TRIP = 12          # free sentences that have no recording here: the built-in voices read them
PAUSE_SECONDS = 0.5
PEAK = 0.7
# Drawn with this seed, but said before by the generator of the first weights, which knew no split.
SAID_BEFORE = {"It is twenty five degrees outside."}
FEWEST_WORDS = 6         # of a framed sentence
REFERENCE = "The small robot walked along the river and found a golden key near the old bridge. It was very happy."
CLONE_RATE_HZ = 24000
UNHEARD_VOICES = 16
SENTENCES_OF_A_LANGUAGE = 30
VOICES_OF_A_LANGUAGE = 10
SENTENCES_OF_AN_UNSEEN_VOICE = 3


def sentences_in(path):
    return [line for line in path.read_text(encoding="utf8").splitlines() if line and not line.startswith("#")]


def free_sentences(folder, language=None):
    return sentences_in(folder / ("free.txt" if language is None else f"languages/free.{language}.txt"))


def write_opus(path, x, rate_hz, bits_per_second):
    """Ogg Opus: a quarter of the size of FLAC."""
    samples = np.clip(np.round(x * 32767), -32768, 32767).astype("<i2")
    command = ["ffmpeg", "-loglevel", "error", "-y", "-f", "s16le", "-ar", str(rate_hz), "-ac", "1", "-i", "-", "-c:a", "libopus"]
    command += ["-b:a", str(bits_per_second), "-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact", str(path)]
    subprocess.run(command, input=samples.tobytes(), check=True)


def framed_sentence(patterns):
    """Long enough that no other text contains it by chance."""
    while True:
        sentence = patterns.draw("pattern")
        if len(sentence.split()) >= FEWEST_WORDS and sentence not in SAID_BEFORE:
            return sentence


def recording(sentences, voice, r):
    """The sentences with pauses between -> float32 16 kHz, [(text, start, end)]"""
    pieces, at, segments = [np.zeros(int(0.3 * RATE_HZ), np.float32)], 0.3, []
    for text in sentences:
        said = say_with_espeak(text, voice, r).samples
        said = said * (PEAK / np.abs(said).max())
        segments.append(dict(text=text, start=round(at, 3), end=round(at + len(said) / RATE_HZ, 3)))
        pieces += [said, np.zeros(int(PAUSE_SECONDS * RATE_HZ), np.float32)]
        at += len(said) / RATE_HZ + PAUSE_SECONDS
    return np.concatenate(pieces), segments


def speech(folder, free):
    r, patterns, rows = random.Random(SEED), Sentences(SEED, "evaluation"), []
    plan = [(v, "trained", 2) for v in ENGLISH_TRAINED[:16]] + [(v, "unseen", 3) for v in UNSEEN]
    for voice, group, each in plan:
        framed = [framed_sentence(patterns) for _ in range(each)]
        natural = [free.pop(0) for _ in range(each)]
        sentences = [s for pair in zip(framed, natural) for s in pair]
        x, segments = recording(sentences, voice, r)
        for segment, kind in zip(segments, ["pattern", "free"] * each):
            segment["kind"] = kind
        file = f"speech/{voice.replace('+', '-')}.opus"
        write_opus(folder / file, x, RATE_HZ, 40_000)
        rows.append(dict(file=file, voice=voice, group=group, segments=segments))
    return rows


def unheard(folder):
    r, texts, rows = random.Random(SEED), sentences_in(folder / "unheard.txt"), []
    for at, voice in enumerate(ENGLISH_TRAINED[:UNHEARD_VOICES]):
        x, segments = recording(texts[at::UNHEARD_VOICES], voice, r)
        for segment in segments:
            segment["kind"] = "free"
        file = f"unheard/{voice.replace('+', '-')}.opus"
        write_opus(folder / file, x, RATE_HZ, 24_000)
        rows.append(dict(file=file, voice=voice, group="trained", segments=segments))
    return rows


def texts_of(folder, language):
    """[(text, kind)]: the hand-written sentences first, as many as there are."""
    grammar = Grammar(language, SEED, "evaluation")
    texts = [(text, "free") for text in free_sentences(folder, language)][:SENTENCES_OF_A_LANGUAGE]
    while len(texts) < SENTENCES_OF_A_LANGUAGE:
        text = grammar.draw("frame")
        if len(text.split()) >= FEWEST_WORDS - 1 and text not in [t for t, _ in texts]:
            texts.append((text, "pattern"))
    return texts


def of_language(folder, group, said_by):
    """A recording of each voice: said_by has (voice, [(text, kind)])."""
    r, rows = random.Random(SEED), []
    for voice, said in said_by:
        x, segments = recording([text for text, _ in said], voice, r)
        for segment, (_, kind) in zip(segments, said):
            segment["kind"] = kind
        file = f"languages/{voice.replace('+', '-')}.opus"
        write_opus(folder / file, x, RATE_HZ, 24_000)
        rows.append(dict(file=file, voice=voice, group=group, segments=segments))
    return rows


def trained_of(folder, language):
    texts, voices = texts_of(folder, language), voices_of(language).trained[:VOICES_OF_A_LANGUAGE]
    return of_language(folder, "trained", [(voice, texts[at::VOICES_OF_A_LANGUAGE]) for at, voice in enumerate(voices)])


def unseen_of(folder, language):
    """The first sentences of the trained voices again."""
    known = voices_of(language)
    texts, voices, each = texts_of(folder, language), [f"{ACCENTS[language][0]}+{v}" for v in UNSEEN_VARIANTS], SENTENCES_OF_AN_UNSEEN_VOICE
    if known_too := set(voices) & {*known.trained, *known.others}:
        raise SystemExit(f"trained, so not unseen: {known_too}")
    return of_language(folder, "unseen", [(voice, texts[at * each :][:each]) for at, voice in enumerate(voices)])


def references(folder):
    rows = []
    for voice, pitch in UNSEEN_SPEAKERS:
        said = espeak.speak(REFERENCE, voice, 175, pitch)
        x = resample(said.samples.astype(np.float32) / 32768, espeak.RATE_HZ, CLONE_RATE_HZ)
        file = f"references/{voice.replace('+', '-')}.opus"
        write_opus(folder / file, x * (PEAK / np.abs(x).max()), CLONE_RATE_HZ, 64_000)
        rows.append(dict(file=file, voice=voice, text=REFERENCE))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    free, others = free_sentences(folder), [language for language in LANGUAGES if language != "en"]
    wrong = [s for language in [None, *others] for s in free_sentences(folder, language) if not is_evaluation(s)]
    wrong += [s for s in sentences_in(folder / "unheard.txt") if not is_evaluation(s)]
    if wrong:
        raise SystemExit("on the training side of the split, reword: " + " | ".join(wrong))
    for name in ("speech", "references", "languages", "unheard"):
        (folder / name).mkdir(exist_ok=True)
    made = dict(
        roundTrip=free[:ROUND_TRIP], speech=speech(folder, free[ROUND_TRIP:]), references=references(folder),
        languages={language: trained_of(folder, language) for language in others}, unheard=unheard(folder),
    )
    # Last, because a few samples of what espeak says depend on what it said before.
    for language in others:
        made["languages"][language] += unseen_of(folder, language)
    (folder / "set.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf8")
    print(sum(s["end"] - s["start"] for row in made["speech"] for s in row["segments"]), "s of speech")


if __name__ == "__main__":
    main()
