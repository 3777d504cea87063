// The program of a compiler thread for tests: requests say what to do.

import type { Expression } from "#engines/grammar/Expression.ts"
import { Refused, serveGrammars, threadMs } from "#engines/llama/compiler/GrammarThread.ts"

export interface TestRequest {
  readonly root?: Expression
  readonly rules?: Readonly<Record<string, Expression>>
  readonly misbehaves?: "loops" | "throws" | "refuses" | "loops in the second field"
  /** Milliseconds of processor time to spend, with checkpoints. */
  readonly works?: number
  /** Tells otherwise equal requests apart. */
  readonly number?: number
}

let served = 0

const waste = (ms: number) => {
  const untilMs = threadMs() + ms
  while (threadMs() < untilMs) served++
}

serveGrammars<TestRequest>(({ misbehaves, root, rules = {}, works = 0 }, { at, checkpoint }) => {
  served++
  for (const untilMs = threadMs() + works; threadMs() < untilMs; ) checkpoint(1)
  if (misbehaves === "loops in the second field") {
    at("tools[0]")
    waste(20)
    at("tools[1]")
    waste(540)
    at("tools[2]")
    waste(60_000)
  }
  if (misbehaves === "throws") throw new Error("a bug")
  if (misbehaves === "refuses") throw new Refused("format.type", "is no type")
  while (misbehaves === "loops") served++
  return {
    fieldOf: (rule) => (rule === "root" ? "format" : rule),
    // Without a root, the reply is the number of requests that this thread has served.
    shape: {
      stages: [],
      rules: { root: root ?? { kind: "text", text: String(served) }, rules: new Map(Object.entries(rules)) },
    },
  }
})
