// The cloning model is fed the symbols that it was trained with: models/train/voices/languages.py has the same replacements of
// sounds as the product.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { inInventory } from "#engines/clone/Inventory.ts"
import { languageCodes } from "#engines/clone/Languages.ts"
import { loadSymbols } from "#engines/shared/speech/Symbols.ts"

const models = new URL("../", import.meta.url)
const symbols = await Effect.runPromise(
  loadSymbols(fileURLToPath(new URL("kokoro-demo/tokenizer.json", models))),
)

/** Sound → the symbol that stands for it, as the training reads it. */
const trained = new Map(
  readFileSync(new URL("train/voices/nearest.txt", models), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .flatMap((line) => {
      const [near = "", sounds = ""] = line.split(" ")
      return [...sounds].map((sound) => [sound, near] as const)
    }),
)

/** Letters of Latin, of the IPA and its extensions, Greek ones that the IPA uses. */
const sounds = [
  [0x61, 0x7a],
  [0xe6, 0x17f],
  [0x250, 0x2af],
  [0x3b1, 0x3c9],
].flatMap(([first = 0, last = 0]) =>
  Array.from({ length: last - first + 1 }, (_, i) => String.fromCodePoint(first + i)),
)

describe("sounds of other languages", () => {
  it("are replaced in the product as in the training", () => {
    const product = new Map(
      sounds
        .filter((sound) => !symbols.has(sound) && sound.normalize("NFD") === sound)
        .flatMap((sound) => {
          const near = inInventory(sound, symbols)
          return near === "" ? [] : [[sound, near] as const]
        }),
    )
    expect(Object.fromEntries(trained)).toEqual(Object.fromEntries(product))
  })

  it("of Mandarin keep the two tones that eSpeak tells apart, and unaspirated stops are voiced", () => {
    const { tidy } = languageCodes.find(({ code }) => code === "zh")!
    expect(tidy("niɜχˈɑu2 tɕˈi5n thˈiɛ5n tɕhˈi5 pɑ1 mə4n")).toBe("ni↗χˈɑu↓ dʑˈin tˈiɛn tɕˈi bɑ mən")
    expect(tidy("tshˈi5 tsˈonɡ5 kˈuoɜ")).toBe("tsˈi dzˈonɡ ɡˈuo↗")
  })
})
