// Live requests to the nodes of a region that go on until they are told to stop: how many were answered, which failed, and how long they
// took.
import { onTestFinished } from "vitest"
import { script } from "./FakeNode.ts"

export interface Client {
  readonly key: string
  /** The address at the moment of each request; undefined: its node does not run, so it waits. */
  readonly base: () => string | undefined
}

export interface LoadCounts {
  /** Answers by key. */
  readonly answered: ReadonlyMap<string, number>
  readonly failures: ReadonlyArray<string>
  /** Milliseconds of each answer, in the order in which they came. */
  readonly tookMs: ReadonlyArray<number>
}

interface RegionLoad {
  /** What the failures from now on are said to happen in. */
  readonly during: (what: string) => void
  /** Answers so far. */
  readonly count: () => number
  readonly stop: () => Promise<LoadCounts>
}

const body = JSON.stringify({
  model: "fake",
  prompt: script({ tokens: 10, tokenMs: 10 }),
  max_tokens: 100,
})

/** A completion of 100 ms. */
export const completion = (
  base: string,
  key: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(`${base}/v1/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body,
  })

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Each client sends its next request when the one before is answered. */
export const startLoad = (clients: ReadonlyArray<Client>): RegionLoad => {
  const answered = new Map<string, number>()
  const failures: Array<string> = []
  const tookMs: Array<number> = []
  const began = performance.now()
  let now = "the start"
  let isOver = false
  // Of a test that fails in between, too.
  onTestFinished(() => {
    isOver = true
  })
  const ask = async ({ base, key }: Client): Promise<void> => {
    const at = base()
    if (at === undefined) return void (await pause(20))
    const sent = performance.now()
    const fail = (what: string) => void failures.push(`${what} at ${Math.round(sent - began)} ms, ${now}`)
    try {
      const answer = await completion(at, key)
      const text = await answer.text()
      if (answer.status !== 200) return fail(`${answer.status} ${text}`)
      answered.set(key, (answered.get(key) ?? 0) + 1)
      tookMs.push(performance.now() - sent)
    } catch (error) {
      fail(`${(error as Error & { cause?: unknown }).cause ?? error}`)
      await pause(20)
    }
  }
  const running = clients.map(async (client) => {
    while (!isOver) await ask(client)
  })
  return {
    during: (what) => {
      now = what
    },
    count: () => tookMs.length,
    stop: async () => {
      isOver = true
      await Promise.all(running)
      return { answered, failures, tookMs }
    },
  }
}

/** The value that this part of them does not exceed. */
export const quantile = (values: ReadonlyArray<number>, part: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return Math.round((sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? 0) * 10) / 10
}
