// A progress line on standard error, only on a terminal.
import { Effect, type Scope } from "effect"
import { monotonicMs } from "#domain/queues/Monotonic.ts"

interface Terminal {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly write: (text: string) => unknown
}

const barWidth = 24
/** Redrawing more often is not visible. */
const everyMs = 100

export interface ProgressLine {
  /** `done` in 0..1 draws a bar. undefined counts seconds, for work of unknown length. */
  readonly show: (what: string, done: number | undefined) => void
  /** Prints a line that stays, above it. */
  readonly say: (line: string) => void
}

const bar = (done: number): string => {
  const filled = Math.round(Math.min(1, Math.max(0, done)) * barWidth)
  return `${"█".repeat(filled)}${"░".repeat(barWidth - filled)} ${String(Math.floor(100 * done)).padStart(3)} %`
}

export const lineOf = (what: string, done: number | undefined, seconds: number): string =>
  `${what.padEnd(14)} ${done === undefined ? `${Math.floor(seconds)} s` : bar(done)}`

/** Shown until the scope closes, then removed. */
export const progressLine = (
  terminal: Terminal = process.stderr,
): Effect.Effect<ProgressLine, never, Scope.Scope> =>
  Effect.gen(function* (): Effect.fn.Return<ProgressLine, never, Scope.Scope> {
    if (terminal.isTTY !== true) return { show: () => {}, say: (line) => void terminal.write(`${line}\n`) }
    const startedMs = yield* monotonicMs
    let what = ""
    let done: number | undefined
    const draw = Effect.map(monotonicMs, (nowMs) => {
      if (what === "") return
      const line = lineOf(what, done, (nowMs - startedMs) / 1000)
      terminal.write(`\r\u001b[K${line.slice(0, (terminal.columns ?? 80) - 1)}`)
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(everyMs), draw)))
    yield* Effect.addFinalizer(() => Effect.sync(() => void terminal.write("\r\u001b[K")))
    return {
      show: (now, part) => {
        what = now
        done = part
      },
      say: (line) => void terminal.write(`\r\u001b[K${line}\n`),
    }
  })
