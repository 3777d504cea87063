// The conversation suite: what a node needs from the end of a turn to the first audio of the answer, beside the sum of the times
// of its three engines alone for the same turn.
import { availableParallelism } from "node:os"
import { Effect } from "effect"
import type { TransportName } from "#harness/conversation/Transport.ts"
import {
  atMost,
  besideFloor,
  beyond,
  figureOf,
  ofEach,
  type Part,
  type Readings,
  times,
} from "#harness/report/Figure.ts"
import { type Child, ChildFailed, startChild } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { generated } from "../transcription/Sized.ts"
import type { BareCommands, BareTimes } from "./bareMain.ts"
import { besideSocket, callLoads, freeUdpPort } from "./Calls.ts"
import { type ConversationSize, catalogOf, engineWeights, spokenClips } from "./Models.ts"
import { type NodeTurn, turnAt } from "./Turns.ts"

interface Plan {
  readonly turns: RoundsPlan
  readonly silences: ReadonlyArray<number>
  readonly calls: { readonly calls: number; readonly seconds: number }
}

const full: Plan = {
  turns: { rounds: 10, withinMs: 42_000 },
  silences: [500, 200],
  calls: { calls: 8, seconds: 12 },
}
const quick: Plan = {
  turns: { rounds: 3, withinMs: 20_000 },
  silences: [500],
  calls: { calls: 4, seconds: 5 },
}

/** Tokens of an answer. Generated weights never end a clause, so this is their first piece: that of a short clause. */
const answerTokens = 12

/** The goals: at most this times the engines' sum, plus milliseconds. */
const allowedRatio = 1.15
const allowedMs = { demonstration: 10, generated: 30 }

interface Reading {
  readonly node: NodeTurn
  readonly bare: BareTimes
}

const sumOf = ({ speechMs, textMs, transcriptionMs }: BareTimes): number =>
  transcriptionMs + textMs + speechMs

const enginesSum = (readings: ReadonlyArray<Reading>): Readings =>
  ofEach(readings, "engines alone: sum", "ms", ({ bare }) => sumOf(bare))

const nodeTimes = (
  readings: ReadonlyArray<Reading>,
  name: string,
  part: (turn: NodeTurn) => number,
): Readings => ofEach(readings, name, "ms", ({ node }) => part(node))

/** Rounds of one turn through the node and the same turn with the engines alone. */
const roundsOf = (
  { bare, gateway }: Stage,
  plan: RoundsPlan,
  silenceMs: number | undefined,
): Effect.Effect<ReadonlyArray<Reading>, ChildFailed> => {
  const clips = spokenClips(8)
  const round = (nth: number) =>
    Effect.gen(function* () {
      const clip = clips[nth % clips.length]!
      const node = yield* Effect.tryPromise({
        try: (signal) => turnAt(gateway.target, { clip, silenceMs, maxTokens: answerTokens }, signal),
        catch: (cause) => new ChildFailed({ child: "edgewise serve", detail: String(cause) }),
      })
      const { piece, transcript } = node
      const alone = yield* bare.ask("turn", {
        samples: clip.samples,
        transcript,
        piece,
        maxTokens: answerTokens,
      })
      return { node, bare: alone }
    })
  // A silence inside of the speech that ends the turn makes two turns of it.
  const isWhole = ({ node }: Reading) => node.earlyEnds === 0
  return Effect.map(repeatRounds(plan, round), (readings) => readings.filter(isWhole))
}

const committed = (readings: ReadonlyArray<Reading>, extraMs: number): Part => {
  const sum = enginesSum(readings)
  const of = (what: string, part: (turn: NodeTurn) => number) => nodeTimes(readings, what, part)
  const alone = (what: string, part: (times: BareTimes) => number) =>
    figureOf(ofEach(readings, `engines alone: ${what}`, "ms", ({ bare }) => part(bare)))
  const first = of("node: commit to first audio", (turn) => turn.audioMs)
  return {
    title: "From the client's commit to the first audio: nothing can be prepared before",
    method:
      "each round a new conversation of one turn, said in real time, then the same turn with the engines alone, one after the " +
      `other in one process: the whole audio, as much text as the node's first piece, the same piece; answers of ${answerTokens} tokens`,
    figures: [
      alone("transcript of the whole turn", (ms) => ms.transcriptionMs),
      alone("text of the first piece", (ms) => ms.textMs),
      alone("first audio of the piece", (ms) => ms.speechMs),
      figureOf(of("node: commit to transcript", (turn) => turn.transcriptMs)),
      figureOf(of("node: transcript to response.created", (turn) => turn.createdMs - turn.transcriptMs)),
      figureOf(of("node: response.created to first audio", (turn) => turn.audioMs - turn.createdMs)),
      ...besideFloor(sum, first),
      beyond(first, times(allowedRatio, sum), atMost(extraMs)),
    ],
  }
}

const voiced = (readings: ReadonlyArray<Reading>, silenceMs: number, extraMs: number): Part => {
  const sum = enginesSum(readings)
  const of = (what: string, part: (turn: NodeTurn) => number) => nodeTimes(readings, what, part)
  const beyondSilence = of("beyond the silence", (turn) => turn.voiceMs - silenceMs)
  return {
    title: `Voice to voice, server_vad of ${silenceMs} ms`,
    method:
      "from the last sample of speech that was spoken to the first audible sample that is played, client in real time, pieces of " +
      "20 ms; the same turns with the engines alone as above",
    figures: [
      figureOf(sum),
      figureOf(of("voice to voice", (turn) => turn.voiceMs)),
      figureOf(of("speech_stopped to first audio", (turn) => turn.audioMs)),
      figureOf(beyondSilence, atMost(20)),
      beyond(beyondSilence, times(allowedRatio, sum), atMost(extraMs)),
      // Work can begin once the silence has lasted for some frames.
      figureOf(
        ofEach(
          readings,
          `engines fit inside the silence on a machine faster by`,
          "x",
          ({ bare }) => sumOf(bare) / (silenceMs - preparedAfterMs),
        ),
      ),
    ],
  }
}

/** The same turn over a WebSocket and over a call, in turn. */
const transports = ({ gateway }: Stage, plan: RoundsPlan): Effect.Effect<Part, ChildFailed> => {
  const clips = spokenClips(8)
  const turn = (nth: number, transport: TransportName) =>
    Effect.tryPromise({
      try: (signal) =>
        turnAt(
          gateway.target,
          { clip: clips[nth % clips.length]!, silenceMs: 500, maxTokens: answerTokens, transport },
          signal,
        ),
      catch: (cause) => new ChildFailed({ child: "edgewise serve", detail: String(cause) }),
    })
  const round = (nth: number) =>
    Effect.all({ socket: turn(nth, "websocket"), call: turn(nth, "webrtc") }, { concurrency: 1 })
  return Effect.map(repeatRounds(plan, round), (all) => {
    const whole = all.filter(({ call, socket }) => call.earlyEnds === 0 && socket.earlyEnds === 0)
    return besideSocket(
      ofEach(whole, "over a WebSocket", "ms", ({ socket }) => socket.voiceMs),
      ofEach(whole, "over a call", "ms", ({ call }) => call.voiceMs),
    )
  })
}

/** Silence after which a node can begin to prepare an answer, milliseconds. */
const preparedAfterMs = 80

interface Stage {
  readonly gateway: Gateway
  readonly bare: Child<BareCommands>
}

/** On the weights of a size; undefined for the demonstration weights. */
export const conversationSuite = (size?: ConversationSize): Suite => {
  const extraMs = size === undefined ? allowedMs.demonstration : allowedMs.generated
  return suite<Stage, Plan>({
    name: "conversation",
    plans: { full, quick },
    start: ({ profileDir, quick: short, threads = size === undefined ? 1 : availableParallelism() }) =>
      Effect.gen(function* () {
        const weights = yield* generated(() => engineWeights(size, threads))
        const bare = yield* startChild<BareCommands>({
          name: "bare engines",
          entry: new URL("./bareMain.ts", import.meta.url),
        })
        yield* bare.ask("open", weights)
        const settings = { EDGEWISE_WEBRTC_PORT: String(yield* freeUdpPort) }
        const gateway = yield* startGateway({ models: catalogOf(weights), profileDir, settings })
        // Until the code of both is compiled.
        yield* roundsOf({ gateway, bare }, { rounds: short ? 1 : 3, withinMs: 15_000 }, undefined)
        return { gateway, bare }
      }),
    died: ({ bare, gateway }) => Effect.raceFirst(bare.died, gateway.child.died),
    sections: {
      commit: (stage, plan) =>
        Effect.map(roundsOf(stage, plan.turns, undefined), (readings) => committed(readings, extraMs)),
      silences: (stage, plan) =>
        Effect.forEach(plan.silences, (silenceMs) =>
          Effect.map(roundsOf(stage, plan.turns, silenceMs), (readings) =>
            voiced(readings, silenceMs, extraMs),
          ),
        ),
      calls: (stage, plan) =>
        Effect.all([transports(stage, plan.turns), callLoads(plan.calls, spokenClips(8))], {
          concurrency: 1,
        }),
    },
  })
}
