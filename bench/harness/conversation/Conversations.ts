// The conversations of a closed loop: each client has one at a time, and a request of the load is its next turn.
import type { Target } from "../client/Exchange.ts"
import { RequestFailed } from "../client/Failures.ts"
import type { Measured } from "../client/Outcome.ts"
import type { Clip } from "../data/Clip.ts"
import { Random } from "../random/Random.ts"
import { type ConversationAsk, Session } from "./Session.ts"
import type { TranscriptCheck } from "./TranscriptCheck.ts"
import { runTurn } from "./Turn.ts"

export interface ConversationPlan extends ConversationAsk {
  readonly clips: ReadonlyArray<Clip>
  readonly dataset: string
  /** Turns of a conversation, before it is closed and another one opened. */
  readonly turnsEach: number
  /** Share of the answers that the user interrupts. */
  readonly interrupt: number
  /** Turns whose transcripts are compared with those of files. */
  readonly compare: number
}

/** The user thinks for this long before a turn, at random, so that turns of several clients do not stay together. A guess. */
const leastPauseMs = 200
const pauseSpreadMs = 500
/** An interrupted answer was heard for this long, at random. A guess. */
const leastHeardMs = 300
const heardSpreadMs = 1_200

/** Stream of random numbers, apart from those of arrivals and prompts. */
const stream = 0x74_61_6c_6b

interface Client {
  readonly session: Session
  turns: number
}

export class Conversations {
  readonly #plan: ConversationPlan
  readonly #target: Target
  readonly #seed: number
  readonly #check: TranscriptCheck
  readonly #clients = new Map<number, Client>()

  constructor(plan: ConversationPlan, target: Target, seed: number, check: TranscriptCheck) {
    this.#plan = plan
    this.#target = target
    this.#seed = seed
    this.#check = check
  }

  /** The next turn of a client. Fails with RequestFailed; the conversation is then over. */
  async turn(nth: number, index: number, signal: AbortSignal): Promise<Measured> {
    const { clips, interrupt, turns, turnsEach } = this.#plan
    const random = new Random(this.#seed ^ stream, index)
    const client = this.#clients.get(nth) ?? (await this.#open(nth, signal))
    client.turns++
    const isLast = client.turns >= turnsEach
    const isInterrupted = !isLast && random.next() / 2 ** 32 < interrupt
    const ask = {
      clip: clips[index % clips.length]!,
      turns,
      pauseMs: leastPauseMs + random.below(pauseSpreadMs),
      listenMs: isInterrupted ? leastHeardMs + random.below(heardSpreadMs) : undefined,
      limitMs: this.#target.timeoutMs,
    }
    try {
      const measured = await runTurn(client.session, ask, this.#check, signal)
      if (isLast) this.#close(nth)
      return measured
    } catch (cause) {
      this.#close(nth)
      throw cause
    }
  }

  async #open(nth: number, signal: AbortSignal): Promise<Client> {
    const session = new Session(this.#plan)
    const client = { session, turns: 0 }
    this.#clients.set(nth, client)
    try {
      await session.open(this.#target, signal)
      return client
    } catch (cause) {
      this.#close(nth)
      throw cause
    }
  }

  #close(nth: number): void {
    this.#clients.get(nth)?.session.end(new RequestFailed("unfinished", "the conversation was over"))
    this.#clients.delete(nth)
  }

  close(): void {
    for (const nth of [...this.#clients.keys()]) this.#close(nth)
  }
}
