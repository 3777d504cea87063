// The clients of the chaos suite, in a process of their own: bystanders that repeat short requests of every kind,
// and victims with one long request. All times are milliseconds since the epoch.
import { type IncomingMessage, request } from "node:http"
import { setTimeout } from "node:timers/promises"
import { serveCommands } from "../support/CommandChannel.ts"
import type { Target } from "../support/Connection.ts"
import { type Call, type Kind, kinds, longCalls, type Reply, shortCalls } from "./Models.ts"

export interface Answer extends Reply {
  readonly kind: Kind
  readonly sentMs: number
  readonly endedMs: number
}

const now = (): number => performance.timeOrigin + performance.now()

const keptCharacters = 400
/** Milliseconds between two requests of a bystander: the pace of a voice application, not of a load generator. */
const pauseMs = 40

const send = (target: Target, kind: Kind, call: Call, begun: () => void = () => {}): Promise<Answer> =>
  new Promise((resolve) => {
    const sentMs = now()
    let tail = ""
    let ended = false
    const end = (status: number, whole: boolean) => {
      if (ended) return
      ended = true
      resolve({ kind, sentMs, endedMs: now(), status, whole, tail })
    }
    const outgoing = request(
      {
        host: "127.0.0.1",
        port: target.port,
        path: call.path,
        method: "POST",
        headers: {
          authorization: `Bearer ${target.key}`,
          "content-type": call.contentType,
          "content-length": call.body.length,
        },
      },
      (incoming: IncomingMessage) => {
        const status = incoming.statusCode ?? 0
        incoming.on("data", (piece: Buffer) => {
          begun()
          tail = (tail + piece.toString("latin1")).slice(-keptCharacters)
        })
        incoming.on("close", () => end(status, incoming.complete))
        incoming.on("error", () => end(status, false))
      },
    )
    outgoing.on("error", () => end(0, false))
    outgoing.end(call.body)
  })

let seen: Array<Answer> = []
let going = false
const victims = new Map<number, Promise<Answer>>()
let nextVictim = 1

const bystander = async (target: Target, kind: Kind): Promise<void> => {
  while (going) {
    seen.push(await send(target, kind, shortCalls[kind]))
    await setTimeout(pauseMs)
  }
}

const commands = {
  begin: (target: Target): void => {
    going = true
    for (const kind of kinds) void bystander(target, kind)
  },

  end: (): void => {
    going = false
  },

  /** The bystanders' answers since the last call. */
  seen: (): ReadonlyArray<Answer> => {
    const taken = seen
    seen = []
    return taken
  },

  /** Sends a long request and returns its number once its work has begun. */
  victim: async ({ kind, target }: { readonly kind: Kind; readonly target: Target }): Promise<number> => {
    let begun: () => void = () => {}
    const first = new Promise<void>((resolve) => {
      begun = resolve
    })
    const number = nextVictim++
    const answer = send(target, kind, longCalls[kind], begun)
    victims.set(number, answer)
    // A synchronous transcription sends nothing before its end; after this time its first windows are being transcribed.
    await Promise.race([first, setTimeout(kind === "transcription" ? 150 : 2_000)])
    return number
  },

  victimAnswer: async (number: number): Promise<Answer> => {
    const answer = victims.get(number)
    if (answer === undefined) throw new Error("no such victim")
    victims.delete(number)
    return answer
  },

  /** One short request of a kind. */
  ask: ({ kind, target }: { readonly kind: Kind; readonly target: Target }): Promise<Answer> =>
    send(target, kind, shortCalls[kind]),
}

export type CrowdCommands = typeof commands

serveCommands(commands)
