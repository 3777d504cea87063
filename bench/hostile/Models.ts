// The models of the hostile suite's node as catalog entries, without prices, so that no balance ends a run. Data only.
import { join } from "node:path"
import { repadded } from "../../test/support/engines/RepadGguf.ts"
import { demoWeights } from "../text/Models.ts"

const entry = (id: string, kind: string, adapter: string, more: Readonly<Record<string, unknown>> = {}) => ({
  id,
  kind,
  adapter,
  ownedBy: "bench",
  created: 1,
  files: {},
  runtime: { load: "start" },
  price: {},
  ...more,
})

const textEntry = (id: string, weights: string) =>
  entry(id, "text", "llama-gguf", {
    files: { weights: { source: weights } },
    options: { contextTokens: 2_048, slots: 8 },
  })

/** The demonstration weights with a pre-tokenizer that recurses once for each letter of a word, written to `folder`. */
export const recursiveModel = (folder: string) => {
  const weights = join(folder, "recursive.gguf")
  repadded(demoWeights, weights, "gpt-4o")
  return textEntry("recursive", weights)
}

/** Text without weights, and with the demonstration weights; speech and transcription without. */
export const models = [
  entry("fake", "text", "fake"),
  textEntry("text", demoWeights),
  entry("embedder", "embedding", "llama-embedding", {
    files: { weights: { source: demoWeights } },
    options: { contextTokens: 512, pooling: "mean" },
  }),
  entry("voice", "speech", "fake-speech", {
    options: { slots: 64, realTimeFactor: 0.01 },
    speech: { maxCharacters: 4_096, voices: ["fake"] },
  }),
  entry("clone", "speech", "fake-speech", {
    options: { cloning: true, languages: ["en", "fr"] },
    speech: { maxCharacters: 850, voices: ["default"], cloning: true, languages: ["en", "fr"] },
  }),
  entry("ear", "transcription", "fake-transcription", {
    options: { pieceSeconds: 2, slots: 8, scripted: false },
  }),
]
