"""Endless synthetic pictures of 96x96 pixels, with questions and exact answers. A scene is one to four shapes in the cells of a 2x2 grid, or
a number or a word in capitals of 5x7 dots. Everything follows from the number of the scene: training uses numbers from TRAINING on.

  python3 -m sight.scenes --count 3 --first 1
"""
import argparse
import json
import random
from pathlib import Path

import numpy as np

K = json.loads((Path(__file__).parent / "scenes.json").read_text(encoding="utf8"))
SIZE, PATCH = 96, 16
TRAINING = 1 << 32
COLOURS, SHAPES, PLACES, NUMERALS, ASKED = list(K["colours"]), K["shapes"], K["places"], K["numerals"], K["questions"]
GLYPHS = {c: np.array([[dot == "#" for dot in row] for row in rows]) for c, rows in K["glyphs"].items()}
THINGS = 1 + len(SHAPES) * len(COLOURS) + len(GLYPHS)      # nothing, a coloured shape, a character
SLOTS = 4                                                  # cells of the grid, or characters of the text
SHAPES_SHARE = 0.55
NUMBER_SHARE = 0.6          # of what is written; the others are words
BARS_SHARE = 0.12           # of pictures that are not square: the engine adds bars of this grey
BAR_GREY = (122, 116, 104)
BLUR_SHARE = 0.5            # of pictures, as larger ones look after they are scaled down
LEAST_SCALE, LARGEST_SCALE = 2.6, 5.0                      # pixels of a dot
COVERED = 0.1               # of a patch, from which on it is labelled with the thing in it
_ROWS, _COLUMNS = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) + 0.5
_NOISE = np.random.default_rng(7).normal(0, 1, 4 * SIZE * SIZE * 3).astype(np.float32)


def shape_thing(shape, colour):
    return 1 + SHAPES.index(shape) * len(COLOURS) + COLOURS.index(colour)


def glyph_thing(character):
    return 1 + len(SHAPES) * len(COLOURS) + list(GLYPHS).index(character)


def inside(shape, x, y, radius):
    dx, dy = np.abs(_COLUMNS - x), _ROWS - y
    if shape == "circle":
        return dx * dx + dy * dy <= radius * radius
    if shape == "square":
        return (dx <= radius * 0.88) & (np.abs(dy) <= radius * 0.88)
    down = (dy + radius) / (2 * radius)
    return (down >= 0) & (down <= 1) & (dx <= down * radius)


def ink(r, colour):
    return [max(0, min(255, v + r.randint(-14, 14))) for v in K["colours"][colour]]


def frame(r):
    """-> left, top, width, height of the picture inside its grey bars, if it has some"""
    if r.random() >= BARS_SHARE:
        return 0, 0, SIZE, SIZE
    side = r.randint(60, SIZE - 2)
    return (0, (SIZE - side) // 2, SIZE, side) if r.random() < 0.5 else ((SIZE - side) // 2, 0, side, SIZE)


def blurred(picture, amount):
    for axis in (0, 1):
        before, after = np.roll(picture, 1, axis), np.roll(picture, -1, axis)
        edge = [slice(None)] * 3
        for at, of in ((0, before), (-1, after)):
            edge[axis] = at
            of[tuple(edge)] = picture[tuple(edge)]
        picture = (1 - amount) * picture + amount / 2 * (before + after)
    return picture


class Scene:
    """picture: uint8 [96, 96, 3]; patches: the thing in each of 36 patches; slots: the things of the cells or characters; shapes: [(cell,
    shape, colour)] or text and ink: what is written in which colour"""

    def __init__(self, number, shapes_share=SHAPES_SHARE):
        r = self.r = random.Random(number)
        self.left, self.top, self.width, self.height = frame(r)
        picture = np.empty((SIZE, SIZE, 3), np.float32)
        picture[:] = BAR_GREY
        paper = r.choice([255, 255, r.randint(215, 255)])
        area = slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)
        picture[area] = [paper - r.randint(0, 18) for _ in range(3)]
        labels = np.zeros((SIZE, SIZE), np.int64)
        self.shapes, self.text, self.ink, self.slots = [], None, None, [0] * SLOTS
        (self._draw_shapes if r.random() < shapes_share else self._write)(picture, labels)
        if r.random() < BLUR_SHARE:
            picture = blurred(picture, r.uniform(0.1, 0.6))
        begin = r.randrange(3 * SIZE * SIZE * 3)
        picture += _NOISE[begin : begin + picture.size].reshape(picture.shape) * r.choice([0, r.uniform(0, 6)])
        self.picture = np.clip(picture + 0.5, 0, 255).astype(np.uint8)
        n = SIZE // PATCH
        squares = labels.reshape(n, PATCH, n, PATCH).transpose(0, 2, 1, 3).reshape(n * n, PATCH * PATCH)
        self.patches = np.zeros(n * n, np.int64)
        for i in np.flatnonzero(squares.any(1)):
            seen = np.bincount(squares[i], minlength=2)
            seen[0] = 0
            if seen.max() > COVERED * PATCH * PATCH:
                self.patches[i] = seen.argmax()

    def _draw_shapes(self, picture, labels):
        r = self.r
        wide, high = self.width / 2, self.height / 2
        for cell in sorted(r.sample(range(4), r.choices([1, 2, 3, 4], [0.25, 0.3, 0.3, 0.15])[0])):
            shape, colour = r.choice(SHAPES), r.choice(COLOURS)
            half = min(wide, high) / 2
            radius = half * r.uniform(0.42, 0.8)
            loose = min(4.0, half - radius)
            x = self.left + (cell % 2 + 0.5) * wide + r.uniform(-loose, loose)
            y = self.top + (cell // 2 + 0.5) * high + r.uniform(-loose, loose)
            covered = inside(shape, x, y, radius)
            picture[covered] = ink(r, colour)
            labels[covered] = self.slots[cell] = shape_thing(shape, colour)
            self.shapes.append((cell, shape, colour))

    def _write(self, picture, labels):
        r = self.r
        self.text = str(r.randint(0, 99)) if r.random() < NUMBER_SHARE else r.choice(K["words"])
        self.ink = r.choice(COLOURS)
        dots = 6 * len(self.text) - 1
        most = min(LARGEST_SCALE, (self.width - 3) / dots, (self.height - 3) / 7)
        scale = r.uniform(min(LEAST_SCALE, most), most)
        wide, high = int(dots * scale), int(7 * scale)
        x, y = self.left + r.randint(1, self.width - wide - 1), self.top + r.randint(1, self.height - high - 1)
        rows, columns = (np.arange(high) / scale).astype(int), (np.arange(wide) / scale).astype(int)
        colour = ink(r, self.ink)
        for i, character in enumerate(self.text):
            own = np.flatnonzero(columns // 6 == i)
            own = own[columns[own] % 6 < 5]
            filled = GLYPHS[character][rows[:, None], columns[own][None] % 6]
            a, b = slice(y, y + high), slice(x + own[0], x + own[-1] + 1)
            picture[a, b][filled] = colour
            labels[a, b] = self.slots[i] = glyph_thing(character)

    def singles(self):
        """-> cell, from 1, of each shape and colour, colour, from 1, of each shape; 0 for what is not there exactly once"""
        shapes, colours = [s for _, s, _ in self.shapes], [c for _, _, c in self.shapes]
        at = {name: cell + 1 for cell, *names in self.shapes for name in names if (shapes + colours).count(name) == 1}
        inks = {s: COLOURS.index(c) + 1 for _, s, c in self.shapes if s in at}
        return [at.get(name, 0) for name in SHAPES + COLOURS], [inks.get(shape, 0) for shape in SHAPES]

    @property
    def writing(self):
        return "number" if self.text.isdigit() else "word"


def listed(parts):
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def with_article(words):
    return ("an " if words[0] in "aeiou" else "a ") + words


def sentence(text):
    return text[:1].upper() + text[1:] + "."


def yes(is_so):
    return "Yes." if is_so else "No."


def questions(scene, r):
    """-> [(kind, question, answer)] in any order, at most one of a kind"""
    out = []

    def ask(kind, answer, **words):
        out.append((kind, r.choice(ASKED[kind]).format(a="a", **words), answer))

    def present_or_any(present, every):
        return r.choice(present) if present and r.random() < 0.5 else r.choice(every)

    shapes, colours = [s for _, s, _ in scene.shapes], [c for _, _, c in scene.shapes]
    shape, colour = present_or_any(shapes, SHAPES), present_or_any(colours, COLOURS)
    if scene.text is None:
        ask("describe", sentence(listed([with_article(f"{c} {s}") for _, s, c in scene.shapes])))
        ask("countColour", NUMERALS[colours.count(colour)] + ".", colour=colour)
        once = [i for i, s in enumerate(shapes) if shapes.count(s) == 1]
        if once:
            i, j, k = (r.choice(once) for _ in range(3))
            ask("colour", sentence(colours[i]), shape=shapes[i])
            ask("place", sentence(PLACES[scene.shapes[j][0]]), shape=shapes[j])
            other = present_or_any([colours[k]], COLOURS)
            ask("isShapeColour", yes(colours[k] == other), shape=shapes[k], colour=other)
        once = [i for i, c in enumerate(colours) if colours.count(c) == 1]
        if once:
            i, j = r.choice(once), r.choice(once)
            ask("shape", sentence("the " + shapes[i]), colour=colours[i])
            ask("placeColour", sentence(PLACES[scene.shapes[j][0]]), colour=colours[j])
        cell = r.randrange(4)
        there = [with_article(f"{c} {s}") for at, s, c in scene.shapes if at == cell]
        ask("at", sentence(there[0] if there else "nothing"), place=PLACES[cell])
    else:
        ask("describe", f"The {scene.writing} {scene.text} in {scene.ink}.")
        ask("read", scene.text + ".")
        ask(scene.writing, scene.text + ".")
        ask("inkColour", sentence(scene.ink), writing=scene.writing)
    ask("count", NUMERALS[len(shapes)] + ".")
    ask("countShape", NUMERALS[shapes.count(shape)] + ".", shape=shape)
    ask("isShape", yes(shape in shapes), shape=shape)
    colour = present_or_any(colours or [scene.ink], COLOURS)
    ask("isColour", yes(colour in colours or colour == scene.ink), colour=colour)
    ask("isWriting", yes(scene.text is not None))
    r.shuffle(out)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for the pictures, as PPM")
    options = parser.parse_args()
    for number in range(options.first, options.first + options.count):
        scene = Scene(number)
        print(number, scene.shapes or (scene.text, scene.ink), *(f"\n  {q} {a}" for _, q, a in questions(scene, scene.r)))
        if options.out:
            (options.out / f"{number}.ppm").write_bytes(b"P6 96 96 255\n" + scene.picture.tobytes())


if __name__ == "__main__":
    main()
