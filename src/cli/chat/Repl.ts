// The loop of `edgewise chat` on a terminal: reads lines, runs commands and questions. Ctrl-C stops a running answer; with none
// running, a second one in a row ends the chat.
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { Effect, Fiber, Queue } from "effect"
import { chatLine } from "./ChatLine.ts"
import type { ChatOutput } from "./ChatOutput.ts"
import type { ChatSession } from "./ChatSession.ts"

interface ReplStreams {
  readonly input: Readable
  /** Where the line editor draws. */
  readonly drawing: Writable
  /** Whether `input` sends the keys of a terminal. */
  readonly terminal: boolean
}

type Event =
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "interrupt" }
  | { readonly kind: "end" }

/** Lines that may wait while an answer runs. More than anybody types; a pasted text beyond them loses its end. A guess. */
const waitingLines = 1_000

const openLines = ({ drawing, input, terminal }: ReplStreams) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const events = yield* Queue.dropping<Event>(waitingLines)
      const lines = createInterface({ input, output: drawing, terminal, historySize: 100, prompt: "> " })
      const offer = (event: Event) => void Queue.offerUnsafe(events, event)
      const onInterrupt = () => offer({ kind: "interrupt" })
      lines.on("line", (text) => offer({ kind: "line", text }))
      lines.on("SIGINT", onInterrupt)
      lines.on("close", () => offer({ kind: "end" }))
      // Sent by another process: a terminal's own Ctrl-C arrives as a key.
      process.on("SIGINT", onInterrupt)
      return { events, lines, onInterrupt }
    }),
    ({ lines, onInterrupt }) =>
      Effect.sync(() => {
        process.off("SIGINT", onInterrupt)
        lines.close()
      }),
  )

export const repl = (session: ChatSession, output: ChatOutput, streams: ReplStreams): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { events, lines } = yield* openLines(streams)
      const prompt = Effect.sync(() => lines.prompt())
      let interrupts = 0
      let unfinished = ""
      /** Lines that were typed while an answer ran. */
      const typed: Array<Event> = []
      const next = Effect.suspend(() => {
        const event = typed.shift()
        return event === undefined ? Queue.take(events) : Effect.succeed(event)
      })
      /** Runs an answer until it ends or is interrupted. */
      const untilStopped = Effect.fnUntraced(function* (text: string) {
        const answer = yield* Effect.forkChild(session.ask(text))
        const stopped = Effect.gen(function* () {
          for (;;) {
            const event = yield* Queue.take(events)
            if (event.kind === "interrupt") break
            typed.push(event)
            if (event.kind === "end" && streams.terminal) break
          }
          interrupts = 1
          yield* Fiber.interrupt(answer)
        })
        yield* Effect.raceFirst(Fiber.await(answer), stopped)
        yield* Fiber.await(answer)
      })
      yield* prompt
      for (;;) {
        const event = yield* next
        if (event.kind === "end") return
        if (event.kind === "interrupt") {
          if (++interrupts > 1) return
          unfinished = ""
          output.note("\nCtrl-C again, or Ctrl-D, ends the chat")
          yield* prompt
          continue
        }
        interrupts = 0
        if (event.text.endsWith("\\")) {
          unfinished += `${event.text.slice(0, -1)}\n`
          continue
        }
        const line = chatLine(unfinished + event.text)
        unfinished = ""
        if (line.kind === "command") {
          if (line.name === "exit") return
          yield* session.run(line.name, line.argument)
        } else if (line.kind === "unknown") {
          output.problem(`/${line.name} is no command; /help shows them`)
        } else if (line.kind === "message") {
          yield* untilStopped(line.text)
        }
        yield* prompt
      }
    }),
  )
