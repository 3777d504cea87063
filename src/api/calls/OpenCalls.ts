// The calls that are open on this node, by the ids that their callers know: for hanging up, for sidebands and for figures.
import { Context, Effect, Layer, type Scope } from "effect"
import type { PeerEnd, PeerQuality } from "#calls/PeerWire.ts"
import { CallNotFound } from "#domain/wire/Errors.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { CallLine } from "./CallLine.ts"

/** `hung up`: by `…/hangup`. `closed`: by the node, for a reason that the caller was told. */
type CallEndKind = PeerEnd | "hung up" | "closed"
const callEndKinds: ReadonlyArray<CallEndKind> = [
  "left",
  "failed",
  "too fast",
  "too slow",
  "process",
  "hung up",
  "closed",
]

export interface CallGauges {
  readonly open: number
  readonly ended: Readonly<Record<CallEndKind, number>>
  /** Of the open calls that have reported. */
  readonly qualities: ReadonlyArray<PeerQuality>
}

interface OpenCall {
  readonly orgId: string
  readonly line: CallLine
}

export class OpenCalls extends Context.Service<
  OpenCalls,
  {
    /** Where the conversations of calls run: they outlast the request that opened them. */
    readonly scope: Scope.Scope
    /** Lists a call until the scope closes. */
    readonly enter: (
      id: string,
      caller: Pick<Principal, "orgId">,
      line: CallLine,
    ) => Effect.Effect<void, never, Scope.Scope>
    readonly find: (id: string, caller: Pick<Principal, "orgId">) => Effect.Effect<CallLine, CallNotFound>
    readonly ended: (why: CallEndKind) => void
    readonly gauges: () => CallGauges
  }
>()("edgewise/api/OpenCalls") {
  static readonly layer: Layer.Layer<OpenCalls> = Layer.effect(
    OpenCalls,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const calls = new Map<string, OpenCall>()
  const ended = Object.fromEntries(callEndKinds.map((kind) => [kind, 0])) as Record<CallEndKind, number>
  return OpenCalls.of({
    scope,
    enter: (id, { orgId }, line) =>
      Effect.acquireRelease(
        Effect.sync(() => void calls.set(id, { orgId, line })),
        () => Effect.sync(() => void calls.delete(id)),
      ),
    find: (id, { orgId }) => {
      const call = calls.get(id)
      // A call of another organization is none.
      return call === undefined || call.orgId !== orgId
        ? Effect.fail(new CallNotFound({ isOff: false }))
        : Effect.succeed(call.line)
    },
    ended: (why) => {
      ended[why]++
    },
    gauges: () => ({
      open: calls.size,
      ended: { ...ended },
      qualities: [...calls.values()].flatMap(({ line }) => line.quality ?? []),
    }),
  })
})
