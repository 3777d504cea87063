// The attacker of the table of attacks, a process of its own at the lowest priority: carries out one plan until it is stopped. It also
// serves the clip of a voice URL, in chunks of one byte.
import { createServer } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { setPriority } from "node:os"
import { ask } from "../support/Ask.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import type { Target } from "../support/Connection.ts"
import { type AttackName, type AttackPlan, attackPlan } from "./AttackPlans.ts"

const lowestPriority = 19
setPriority(lowestPriority)

const tickMs = 10
/** A connection that reads slower than it is sent to gets nothing more until this much is left. */
const mostUnsentBytes = 1024 * 1024
const clipBytes = 1_000_000

const clips = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "audio/wav" })
  const chunk = Buffer.from("1\r\nx\r\n")
  response.socket?.on("error", () => {})
  // Written past Node's own framing, which would cost more than what is attacked.
  response.flushHeaders()
  response.socket?.write(Buffer.alloc(clipBytes * chunk.length, chunk))
})
const listening = new Promise<number>((resolve) => {
  clips.listen(0, "127.0.0.1", () => resolve((clips.address() as AddressInfo).port))
})

class Attack {
  readonly #port: number
  readonly #plan: AttackPlan
  readonly #timer: NodeJS.Timeout
  readonly #open = new Map<Socket, { answered: boolean }>()
  #opened = 0
  #lastMs = performance.now()
  #connectionsDue = 1

  constructor(port: number, plan: AttackPlan) {
    this.#port = port
    this.#plan = plan
    this.#timer = setInterval(() => this.#tick(), tickMs)
  }

  #tick(): void {
    const nowMs = performance.now()
    const seconds = (nowMs - this.#lastMs) / 1000
    this.#lastMs = nowMs
    const { connectionsPerSecond, mostConnections, repeated } = this.#plan
    this.#connectionsDue = Math.min(mostConnections, this.#connectionsDue + seconds * connectionsPerSecond)
    while (this.#connectionsDue >= 1 && this.#open.size < mostConnections) {
      this.#connectionsDue--
      this.#connect()
    }
    if (repeated === undefined) return
    const again = Buffer.alloc(
      Math.ceil(repeated.perSecond * seconds) * repeated.bytes.length,
      repeated.bytes,
    )
    for (const [socket, { answered }] of this.#open) {
      if ((answered || !repeated.afterAnswer) && socket.writableLength < mostUnsentBytes) socket.write(again)
    }
  }

  #connect(): void {
    const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true })
    const state = { answered: false }
    this.#opened++
    this.#open.set(socket, state)
    socket.on("data", () => {
      if (!state.answered && this.#plan.onAnswer !== undefined) socket.write(this.#plan.onAnswer)
      state.answered = true
      if (this.#plan.closesOnAnswer) socket.destroy()
    })
    socket.on("error", () => {})
    socket.on("close", () => this.#open.delete(socket))
    const { first } = this.#plan
    socket.write(typeof first === "function" ? first(this.#opened) : first)
  }

  /** Ends it; how many connections were made. */
  stop(): number {
    clearInterval(this.#timer)
    for (const socket of this.#open.keys()) socket.destroy()
    return this.#opened
  }
}

/** A client secret of the key with these limits. */
const secretOf = async (target: Target, limits: AttackPlan["secret"]): Promise<string> =>
  (await ask<{ readonly value: string }>(target, "/v1/realtime/client_secrets", { limits })).value

let attack: Attack | undefined

const commands = {
  start: async ({ name, target }: { readonly name: AttackName; readonly target: Target }): Promise<void> => {
    attack?.stop()
    const clipPort = await listening
    const { secret } = attackPlan(name, target, clipPort)
    const key = secret === undefined ? target.key : await secretOf(target, secret)
    attack = new Attack(target.port, attackPlan(name, { ...target, key }, clipPort))
  },
  stop: (): number | undefined => attack?.stop(),
}

export type AttackerCommands = typeof commands

serveCommands(commands)
