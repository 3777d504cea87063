// Catalog files for tests: fake models named by their purpose, and the built-in demonstration model.
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { uses } from "../groups/Uses.ts"

export interface TestModel {
  readonly id: string
  readonly adapter?: string
  readonly kind?: string
  readonly aliases?: ReadonlyArray<string>
  readonly speech?: Readonly<Record<string, unknown>>
  readonly transcription?: Readonly<Record<string, unknown>>
  readonly files?: Readonly<Record<string, unknown>>
  readonly options?: Readonly<Record<string, unknown>>
  readonly runtime?: Readonly<Record<string, unknown>>
  readonly price?: Readonly<Record<string, number>>
  /** Of an entry of kind conversation, which has neither adapter, nor files, nor price. */
  readonly conversation?: Readonly<Record<string, unknown>>
}

/** The price of `llm-3.5-27b`, micro-dollars a million tokens. */
export const price = { inputPerMillionTokens: 200_000, outputPerMillionTokens: 750_000 }

/** 16 slots, 8,192 tokens: what the real text models are deployed with. */
export const fakeModel: TestModel = { id: "fake", runtime: { load: "start" } }

/** The real engine on the built-in weights. */
export const llamaModel: TestModel = {
  id: "llama",
  adapter: "llama-gguf",
  files: {
    weights: {
      source: fileURLToPath(new URL("llama-demo/llama-demo-Q8_0.gguf", `file://${builtInCatalog}`)),
    },
  },
  options: { contextTokens: 2048, slots: 16 },
}

export const writeCatalog = (path: string, models: ReadonlyArray<TestModel>): void => {
  if (models.some(({ files }) => JSON.stringify(files ?? {}).includes("-demo")))
    uses("weights", "a model's weights")
  writeFileSync(
    path,
    JSON.stringify({
      models: models.map((model) => ({
        kind: "text",
        ownedBy: "test",
        created: 1_700_000_000,
        ...(model.kind === "conversation" ? {} : { adapter: "fake", files: {}, price }),
        ...model,
      })),
    }),
  )
}
