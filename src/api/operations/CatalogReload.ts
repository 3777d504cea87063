// Reads the node's catalog again and applies what changed in it, for POST /v1/models/reload and SIGHUP. One reload at a
// time. Other modules' data about models, kept by id, is dropped for models that were removed or have another engine.
import { Context, Effect, Layer, Schema, Semaphore } from "effect"
import { Drain } from "#actors/Drain.ts"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { type Redeployed, Redeployment } from "#actors/model/Redeployment.ts"
import type { ConversationEntry } from "#domain/conversation/ConversationEntry.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { Draining } from "#domain/wire/Errors.ts"
import { type ConversationChanges, Conversations } from "#services/Conversations.ts"
import { SpeechAdmission } from "#services/SpeechAdmission.ts"
import type { BadRegions } from "#store/files/RegionsFile.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import type { BadCatalog } from "#weights/CatalogFile.ts"
import { ConversationSessions } from "../conversation/ConversationSessions.ts"

const ids = Schema.Array(Schema.String)

export const ReloadRecord = Schema.Struct({
  /** `partial` if models are deployed that cannot be loaded: see `failed`. */
  status: Schema.Literals(["success", "partial"]),
  added: ids,
  removed: ids,
  changed: ids,
  unchanged: Schema.Int,
  failed: Schema.Array(Schema.Struct({ model: Schema.String, reason: Schema.String })),
})
export type ReloadRecord = typeof ReloadRecord.Type

/** What a catalog deploys. */
interface CatalogNow {
  readonly deployments: ReadonlyArray<Deployment>
  readonly conversations: ReadonlyArray<ConversationEntry>
}

export class CatalogReload extends Context.Service<
  CatalogReload,
  {
    /** Completes when new requests use the new catalog. Fails, and changes nothing, if the catalog is wrong. */
    readonly reload: Effect.Effect<ReloadRecord, BadCatalog | BadRegions | Draining>
  }
>()("edgewise/api/CatalogReload") {
  /** `read` returns what the catalog deploys now; the regions file has the regions that the catalog may name. */
  static readonly layer = (read: Effect.Effect<CatalogNow, BadCatalog | BadRegions>) =>
    Layer.effect(
      CatalogReload,
      Effect.suspend(() => make(read)),
    )
}

const recordOf = (
  { added, changed, failed, removed, unchanged }: Redeployed,
  conversations: ConversationChanges,
): ReloadRecord => ({
  status: failed.length === 0 ? "success" : "partial",
  added: [...added, ...conversations.added],
  removed: [...removed, ...conversations.removed],
  changed: [...changed, ...conversations.changed],
  unchanged: unchanged + conversations.unchanged,
  failed,
})

const make = Effect.fnUntraced(function* (read: Effect.Effect<CatalogNow, BadCatalog | BadRegions>) {
  const admission = yield* SpeechAdmission
  const conversations = yield* Conversations
  const conversing = yield* ConversationSessions
  const drain = yield* Drain
  const ledger = yield* UsageLedger
  const live = yield* LiveSessions
  const redeployment = yield* Redeployment
  const registry = yield* ModelRegistry
  const oneAtATime = yield* Semaphore.make(1)

  const forget = ({ replaced }: Redeployed) => {
    const others = new Set(replaced)
    const isGone = (id: string) => registry.model(id) === undefined
    admission.forget((id) => others.has(id) || isGone(id))
    conversing.forget((id) => others.has(id) || isGone(id))
    live.forget((id) => others.has(id) || isGone(id))
    ledger.forgetSettled(isGone)
  }

  return CatalogReload.of({
    reload: Effect.gen(function* () {
      if (drain.isClosed()) return yield* new Draining()
      const now = yield* read
      const done = yield* redeployment.apply(now.deployments)
      forget(done)
      const record = recordOf(done, conversations.replace(now.conversations))
      const { added, changed, failed, removed, unchanged } = record
      yield* Effect.logInfo("the catalog was read again").pipe(
        Effect.annotateLogs({
          added: added.length,
          removed: removed.length,
          changed: changed.length,
          unchanged,
          failed: failed.length,
        }),
      )
      return record
    }).pipe(oneAtATime.withPermits(1)),
  })
})
