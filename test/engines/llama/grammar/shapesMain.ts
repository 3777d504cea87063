// The program of a compiler thread for tests: requests say what to do.
import { Refused, serveGrammars } from "#engines/llama/grammar/compile/GrammarThread.ts"
import type { Expression } from "#engines/llama/grammar/Expression.ts"

export interface TestRequest {
  readonly root?: Expression
  readonly misbehaves?: "loops" | "throws" | "refuses"
  /** Tells otherwise equal requests apart. */
  readonly number?: number
}

let served = 0

serveGrammars<TestRequest>(({ misbehaves, root }) => {
  served++
  if (misbehaves === "throws") throw new Error("a bug")
  if (misbehaves === "refuses") throw new Refused("format.type", "is no type")
  while (misbehaves === "loops") served++
  return {
    field: "format",
    // Without a root, the reply is the number of requests that this thread has served.
    shape: { stages: [], rules: { root: root ?? { kind: "text", text: String(served) }, rules: new Map() } },
  }
})
