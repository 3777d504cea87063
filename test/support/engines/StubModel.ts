// A model without a registry: a handle that runs each request with a function of the test.
import { Effect, Schema } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { EngineKind, Facts } from "#engines/protocol/Verbs.ts"

const decode = Schema.decodeUnknownSync(ModelEntry)

export const stubModel = <K extends EngineKind>(
  kind: K,
  run: ModelHandle<K>["run"],
  { entry, facts }: { readonly entry?: ModelEntry; readonly facts?: Facts<K> } = {},
): ModelHandle<K> => ({
  entry:
    entry ?? decode({ id: "stub", kind, adapter: "fake", ownedBy: "test", created: 1, files: {}, price: {} }),
  current: () => undefined,
  facts: () => facts,
  loaded: facts === undefined ? Effect.never : Effect.succeed(facts),
  isContended: () => false,
  run,
})
