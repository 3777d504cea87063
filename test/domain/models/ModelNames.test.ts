// Which model and which voice a name means: ids first, then the catalog's aliases, then OpenAI's.

import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ModelEntry } from "#domain/models/ModelEntry.ts"
import { aliasMistakes, modelNamed, voiceAliases } from "#domain/models/ModelNames.ts"

const decode = Schema.decodeUnknownSync(ModelEntry)
const entry = (id: string, kind: string, more: object = {}): ModelEntry =>
  decode({ id, kind, adapter: "fake", ownedBy: "test", created: 1, files: {}, price: {}, ...more })
const speech = (voices: ReadonlyArray<string>, aliases?: Readonly<Record<string, string>>) => ({
  speech: { maxCharacters: 100, voices, ...(aliases === undefined ? {} : { aliases }) },
})

const presets = [
  "af_bella",
  "af_sarah",
  "am_adam",
  "am_michael",
  "bf_emma",
  "bf_isabella",
  "bm_george",
  "bm_lewis",
]
const women = ["alloy", "coral", "marin", "nova", "sage", "shimmer"]
const men = ["ash", "ballad", "cedar", "echo", "fable", "onyx", "verse"]

describe("a model's name", () => {
  const entries = [
    entry("llm", "text", { aliases: ["gpt-4o"] }),
    entry("tts-a", "speech"),
    entry("tts-b", "speech", { aliases: ["narrator", "tts-1-hd"] }),
    entry("stt", "transcription"),
  ]
  const named = (name: string, openAi = true) => modelNamed(entries, name, openAi)?.id

  it("is its id, an alias of its entry, or one of OpenAI's", () => {
    expect(["llm", "gpt-4o", "narrator"].map((name) => named(name, false))).toEqual(["llm", "llm", "tts-b"])
    for (const name of ["tts-1", "gpt-4o-mini-tts"]) expect(named(name)).toBe("tts-a")
    for (const name of ["whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe"]) {
      expect(named(name)).toBe("stt")
    }
    // The catalog's own alias wins over the default.
    expect(named("tts-1-hd")).toBe("tts-b")
  })

  it("is not one of OpenAI's where they are off, nor where no model of the kind is deployed", () => {
    expect(named("tts-1", false)).toBeUndefined()
    expect(modelNamed([entries[0]!], "whisper-1", true)).toBeUndefined()
  })

  it("never means another model than the one of that id", () => {
    const own = [...entries, entry("whisper-1", "text"), entry("tts-1", "transcription")]
    for (const { id } of own) expect(modelNamed(own, id, true)?.id).toBe(id)
  })

  it("of any other text is unknown", () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        const id = named(name)
        if (id !== undefined) expect(name).toMatch(/^[a-z0-9-]+$/)
      }),
    )
    for (const name of ["", "__proto__", "constructor", "toString"]) expect(named(name)).toBeUndefined()
  })
})

describe("a voice's name", () => {
  const aliases = (voices: ReadonlyArray<string>, own?: Readonly<Record<string, string>>, openAi = true) =>
    voiceAliases(entry("tts", "speech", speech(voices, own)).speech!, voices, openAi)

  it("of OpenAI is a preset of the same sex", () => {
    const bound = aliases(presets)
    expect([...bound.keys()].sort()).toEqual([...women, ...men].sort())
    for (const name of women) expect(bound.get(name)).toMatch(/^[ab]f_/)
    for (const name of men) expect(bound.get(name)).toMatch(/^[ab]m_/)
    // All eight are used: two OpenAI voices in one conversation are mostly two voices here.
    expect(new Set(bound.values())).toEqual(new Set(presets))
  })

  it("is the preset of that given name where there is one", () => {
    const bound = aliases(["af_bella", "af_alloy", "am_onyx", "bm_fable"])
    expect(["alloy", "onyx", "fable"].map((name) => bound.get(name))).toEqual([
      "af_alloy",
      "am_onyx",
      "bm_fable",
    ])
    expect(bound.get("ash")).toBe("am_onyx")
    expect(bound.get("nova")).toBe("af_bella")
  })

  it("is the first voice of a model that names its voices otherwise", () => {
    expect(aliases(["default"]).get("onyx")).toBe("default")
    expect(aliases([]).size).toBe(0)
  })

  it("of the catalog wins over OpenAI's, and a real voice over both", () => {
    const own = { alloy: "bm_lewis", boss: "am_adam" }
    expect(aliases(presets, own).get("alloy")).toBe("bm_lewis")
    expect([...aliases(presets, own, false)]).toEqual([
      ["alloy", "bm_lewis"],
      ["boss", "am_adam"],
    ])
    expect(aliases(["alloy", "af_bella"]).has("alloy")).toBe(false)
  })
})

describe("a catalog is refused where an alias", () => {
  it.each<readonly [problem: string, entries: ReadonlyArray<ModelEntry>]>([
    ["is the id of a model", [entry("a", "text"), entry("b", "text", { aliases: ["a"] })]],
    ["is the id of a model that comes later", [entry("b", "text", { aliases: ["a"] }), entry("a", "text")]],
    ["names two models", [entry("a", "text", { aliases: ["x"] }), entry("b", "text", { aliases: ["x"] })]],
    ["is a voice of its model", [entry("a", "speech", speech(["x", "y"], { x: "y" }))]],
    ["names a voice that the model does not have", [entry("a", "speech", speech(["x"], { y: "z" }))]],
  ])("%s", (_, entries) => {
    expect(aliasMistakes(entries)).toMatchObject([{ path: expect.arrayContaining(["aliases"]) }])
  })

  it("and taken where it is none of that", () => {
    const entries = [entry("a", "text", { aliases: ["x"] }), entry("b", "speech", speech(["v"], { x: "v" }))]
    expect(aliasMistakes(entries)).toEqual([])
  })
})
