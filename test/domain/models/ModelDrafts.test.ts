// Drafts that a catalog names: what is refused, each with one line that says why.
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { draftMistakes } from "#domain/models/ModelDrafts.ts"
import { ModelEntry } from "#domain/models/ModelEntry.ts"

const entry = (id: string, draft?: string, more: object = {}) =>
  Schema.decodeUnknownSync(ModelEntry)({
    id,
    kind: "transcription",
    adapter: "fake-transcription",
    ownedBy: "test",
    created: 1,
    files: {},
    price: {},
    ...(draft === undefined ? {} : { transcription: { draft } }),
    ...more,
  })

const problems = (...entries: ReadonlyArray<ModelEntry>) =>
  draftMistakes(entries).map(({ path, problem }) => `${path.join(".")}: ${problem}`)

describe("drafts", () => {
  it("may name any other transcription model, also one that has a draft itself", () => {
    expect(problems(entry("turbo", "small"), entry("small", "base"), entry("base"))).toEqual([])
  })

  it.each<[string, ReadonlyArray<ModelEntry>, string]>([
    [
      "missing",
      [entry("turbo", "bse"), entry("base")],
      'models.0.transcription.draft: "bse" is not a model of this catalog; did you mean "base"?',
    ],
    [
      "an alias",
      [entry("turbo", "tiny"), entry("base", undefined, { aliases: ["tiny"] })],
      "models.0.transcription.draft: tiny is an alias; name the id, base",
    ],
    [
      "of another kind",
      [entry("turbo", "llm"), entry("llm", undefined, { kind: "text", adapter: "fake" })],
      "models.0.transcription.draft: llm is a text model; a draft transcribes",
    ],
    [
      "the model itself",
      [entry("turbo", "turbo")],
      "models.0.transcription.draft: is the model itself; name a smaller one, or leave it out",
    ],
    [
      "circular",
      [entry("other", "a"), entry("a", "b"), entry("b", "c"), entry("c", "a")],
      "models.1.transcription.draft: is circular: a -> b -> c -> a",
    ],
  ])("that are %s are refused with one line", (_, entries, line) => {
    expect(problems(...entries)).toEqual([line])
  })
})
