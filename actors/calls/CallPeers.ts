// The calls of a node on their way to the process of calls, which is a supervised child: it starts with the node, and again when it has
// ended. Its end is the end of all calls that it had.
import { Cause, Context, Effect, Layer, type Scope } from "effect"
import { PeerProcess } from "#calls/PeerProcess.ts"
import type { FromPeers, PeerEnd, PeerQuality, PeerTerms, ToPeers } from "#calls/PeerWire.ts"
import type { Offer } from "#domain/calls/Offer.ts"
import { CurrentProcessHome } from "#domain/process/ProcessHome.ts"
import { AtCapacity, CallNotFound, InvalidRequest } from "#domain/wire/Errors.ts"
import { startChild } from "../Child.ts"
import * as Specifications from "../Specifications.ts"

/** Calls at a time. A guess: what they cost is limited by the admission of conversations. */
const mostCalls = 256

/** The process of calls starts within a second. */
const retryAfterMs = 1_000

/** What a call tells its conversation. Called on the gateway's event loop; must be quick and must not throw. */
export interface PeerListener {
  /** The data channel is open. */
  readonly opened: () => void
  readonly event: (text: string) => void
  /** s16 of 24 kHz. */
  readonly heard: (samples: Int16Array) => void
  readonly quality: (quality: PeerQuality) => void
  /** Called once, unless the gateway has ended it. */
  readonly ended: (why: PeerEnd) => void
}

export interface Peer {
  /** The answer's session description. */
  readonly answer: string
  readonly event: (text: string) => void
  readonly speech: (samples: Int16Array) => void
  readonly flush: () => void
  /** Messages of the caller that were handled. */
  readonly taken: (messages: number, bytes: number) => void
}

type Refused = AtCapacity | InvalidRequest | CallNotFound

interface Open {
  readonly listener: PeerListener
  answered: ((answer: Effect.Effect<string, Refused>) => void) | undefined
}

class ProcessEnded extends Cause.UnknownError {
  constructor(detail: string) {
    super(undefined, `the process of calls has ended: ${detail}`)
  }
}

const unavailable = new AtCapacity({ model: "calls", retryAfterMs })

export class CallPeers extends Context.Service<
  CallPeers,
  {
    /** Answers an offer. The connection lasts until the scope closes. */
    readonly open: (offer: Offer, listener: PeerListener) => Effect.Effect<Peer, Refused, Scope.Scope>
    /** The process id of the process of calls; undefined while there is none. */
    readonly pid: () => number | undefined
    readonly count: () => number
  }
>()("edgewise/actors/CallPeers") {
  /** A node that takes no calls. */
  static readonly off: Layer.Layer<CallPeers> = Layer.succeed(CallPeers, {
    open: () => Effect.fail(new CallNotFound({ isOff: true })),
    pid: () => undefined,
    count: () => 0,
  })

  static readonly layer = (terms: PeerTerms): Layer.Layer<CallPeers> =>
    Layer.effect(
      CallPeers,
      Effect.suspend(() => make(terms)),
    )
}

const make = Effect.fnUntraced(function* (terms: PeerTerms) {
  const home = yield* CurrentProcessHome
  const calls = new Map<number, Open>()
  let nextId = 0
  let running: PeerProcess | undefined

  const take = (message: FromPeers): void => {
    if (message.t === "up") return
    const { id } = message
    const open = calls.get(id)
    if (open === undefined) return
    const { listener } = open
    switch (message.t) {
      case "answer":
        return open.answered?.(Effect.succeed(message.sdp))
      case "refused":
        return open.answered?.(Effect.fail(new InvalidRequest({ field: "sdp", problem: message.problem })))
      case "open":
        return listener.opened()
      case "event":
        return listener.event(message.text)
      case "heard":
        return listener.heard(message.samples)
      case "quality":
        return listener.quality(message.quality)
      case "ended":
        open.answered?.(
          Effect.fail(new InvalidRequest({ field: "sdp", problem: "did not lead to a connection" })),
        )
        return listener.ended(message.why)
    }
  }

  const endAll = (): void => {
    for (const { answered, listener } of calls.values()) {
      answered?.(Effect.fail(unavailable))
      listener.ended("process")
    }
  }

  yield* startChild({
    ...Specifications.calls,
    name: "process of calls",
    run: ({ ready }) =>
      Effect.callback<never, ProcessEnded>((resume) => {
        const started = new PeerProcess({
          terms,
          home,
          onMessage: (message) => {
            if (message.t === "up") {
              running = started
              ready()
            }
            take(message)
          },
          onExit: (detail) => {
            running = undefined
            endAll()
            resume(Effect.fail(new ProcessEnded(detail)))
          },
        })
        return Effect.sync(() => started.kill())
      }),
  })

  const send = (message: ToPeers): void => running?.send(message)

  const open = (offer: Offer, listener: PeerListener): Effect.Effect<Peer, Refused, Scope.Scope> =>
    Effect.gen(function* () {
      const id = yield* Effect.acquireRelease(
        Effect.suspend(() => {
          if (running === undefined || calls.size >= mostCalls) return Effect.fail(unavailable)
          const given = nextId++
          calls.set(given, { listener, answered: undefined })
          return Effect.succeed(given)
        }),
        (given) =>
          Effect.sync(() => {
            calls.delete(given)
            send({ t: "close", id: given })
          }),
      )
      const answer = yield* Effect.callback<string, Refused>((resume) => {
        const one = calls.get(id)!
        one.answered = (result) => {
          one.answered = undefined
          resume(result)
        }
        send({ t: "offer", id, ...offer })
      })
      return {
        answer,
        event: (text) => send({ t: "event", id, text }),
        speech: (samples) => send({ t: "speech", id, samples }),
        flush: () => send({ t: "flush", id }),
        taken: (messages, bytes) => send({ t: "taken", id, messages, bytes }),
      }
    })

  return CallPeers.of({ open, pid: () => running?.pid, count: () => calls.size })
})
