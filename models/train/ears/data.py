"""Makes training shards for the ears: 8-bit log-mel, texts, word times and frame-level phoneme labels, and the manifest of their sentences.

A shard depends on its seed alone. Finished shards are kept, so running the command again resumes. The development shard (--development)
is made of sentences of the evaluation side of the split and is what train.py watches.

  python3 -m ears.data work/ears --shards 10 --voices-checkpoint work/voices/checkpoint.pt
"""
import argparse
import json
import os
import pickle
import random
import time
from dataclasses import dataclass
from pathlib import Path

from common import torchsetup  # noqa: F401  (threads, before numpy computes)
import numpy as np

from common.grammar import SHARE_OF_FRAMES, Grammar
from common.sentences import Sentences
from common.split import manifest
from common.wordlist import words_of
from ears.clips import Studio, bare, without_speech
from ears.features import LANGUAGES, RATE_HZ, log_mel
from ears.speakers import BuiltInVoices, say_with_espeak, voices_of

VOICES = Path(__file__).resolve().parents[2] / "kokoro-demo" / "voices"
WITHOUT_SPEECH = 0.07
DEVELOPMENT_SEED = 900001


@dataclass(frozen=True)
class Texts:
    """What is spoken. listed: more English words. framed and phrased: shares of the sentences, see grammar.py."""

    languages: tuple = LANGUAGES
    listed: tuple = ()
    framed: float = SHARE_OF_FRAMES
    phrased: float = 0.0

    def source(self, language, seed, side):
        if language == "en":
            return Sentences(seed, side, self.listed, self.phrased)
        return Grammar(language, seed, side, self.framed, self.phrased)


def shard(seed, clips, side, texts, built_in, share):
    r, z = random.Random(seed), np.random.RandomState(seed)
    languages = texts.languages
    studio = Studio(r, z, {language: texts.source(language, seed, side) for language in languages}, built_in, share)
    while clips > 0:
        if r.random() < WITHOUT_SPEECH:
            x = without_speech(r, z)
            clip = dict(language=r.choice(languages), text="", segments=[], words=[], voices=[], phonemes=np.zeros((len(x) // 160 + 4) // 4, np.uint8))
        else:
            clip = studio.clip()
            if clip is None:
                continue
            x = clip.pop("wave")
        clips -= 1
        mel, pad = log_mel(x)
        yield np.clip(np.round((mel - pad) * 127.5), 0, 255).astype(np.uint8), dict(clip, pad=pad, seconds=len(x) / RATE_HZ)


def write_shard(folder, name, seed, clips, side, texts, built_in, share):
    began, mels, meta = time.process_time(), [], []
    for mel, clip in shard(seed, clips, side, texts, built_in, share):
        mels.append(mel)
        meta.append(clip)
    np.save(folder / f"mel-{name}.npy", np.concatenate(mels))
    sentences = [text.strip() for clip in meta for text, _, _ in clip["segments"]]
    (folder / f"sentences-{name}.txt").write_text("\n".join(sentences) + "\n", encoding="utf8")
    unfinished = folder / f"{name}.unfinished"
    unfinished.write_bytes(pickle.dumps((np.cumsum([0] + [len(m) for m in mels]), meta)))
    os.replace(unfinished, folder / f"meta-{name}.pkl")  # the trainer looks for these
    hours = sum(c["seconds"] for c in meta) / 3600
    print(f"shard {name}: {clips} clips, {hours:.2f} h, {time.process_time() - began:.0f} CPU-s", flush=True)


def write_manifest(folder):
    """The sentences of all training shards, for the test that evaluation sentences are not among them."""
    sentences = [s for f in sorted(folder.glob("sentences-[0-9]*.txt")) for s in f.read_text(encoding="utf8").splitlines()]
    (folder / "training-sentences.sha40").write_bytes(manifest(sentences))
    print(f"manifest: {len(sentences)} sentences")


def write_phonemes():
    """Adds the phonemes that espeak speaks a thousand sentences of each language with, behind those that are there."""
    path = Path(__file__).parent / "phonemes.json"
    table, r = json.loads(path.read_text(encoding="utf8")), random.Random(1)
    for language in LANGUAGES:
        source, voices = Texts().source(language, 1, "training"), voices_of(language)
        for _ in range(1_000):
            said = say_with_espeak(source.draw(), r.choice(voices.trained + voices.others), r)
            for _, ipa in said.phonemes if said else ():
                table.setdefault(bare(ipa), len(set(table.values())))
    path.write_text(json.dumps(table, ensure_ascii=False), encoding="utf8")
    print(f"{len(table)} phonemes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the shards go")
    parser.add_argument("--first", type=int, default=1, help="seed of the first shard")
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--clips", type=int, default=600, help="clips a shard")
    parser.add_argument("--languages", default=" ".join(LANGUAGES), help="of the clips, each as often")
    parser.add_argument("--words", help="list of more English words, one a line; see common/wordlist.py")
    parser.add_argument("--framed", type=float, default=SHARE_OF_FRAMES, help="share of the sentences that follow a frame, of languages other than English")
    parser.add_argument("--phrased", type=float, default=0.0, help="share of the sentences that are phrases people say, of the languages that have some")
    parser.add_argument("--voices-checkpoint", help="of voices/train.py: the product's voices speak a share of the sentences, of all languages that voices/languages.py has")
    parser.add_argument("--built-in-share", type=float, default=0.25)
    parser.add_argument("--phonemes", action="store_true", help="write phonemes.json, and stop")
    parser.add_argument("--development", action="store_true", help="make the development shard instead")
    parser.add_argument("--manifest", action="store_true", help="write training-sentences.sha40 of the shards in the folder, and stop")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.phonemes:
        return write_phonemes()
    if options.manifest:
        return write_manifest(options.folder)
    built_in = BuiltInVoices(options.voices_checkpoint, VOICES) if options.voices_checkpoint else None
    listed = tuple(words_of(options.words)) if options.words else ()
    texts = Texts(tuple(options.languages.split()), listed, options.framed, options.phrased)
    make = [("development", DEVELOPMENT_SEED, "evaluation")] if options.development else [
        (f"{seed:05d}", seed, "training") for seed in range(options.first, options.first + options.shards)
    ]
    for name, seed, side in make:
        if not (options.folder / f"meta-{name}.pkl").exists():
            write_shard(options.folder, name, seed, options.clips, side, texts, built_in, options.built_in_share)


if __name__ == "__main__":
    main()
