// The models of the text suite, as catalog entries, and the requests sent to them.
import { fileURLToPath } from "node:url"

export const demoWeights = fileURLToPath(
  new URL("../../models/llama-demo/llama-demo-Q8_0.gguf", import.meta.url),
)

/** A text model as in a catalog. */
export const entry = (id: string, adapter: string, more: Readonly<Record<string, unknown>>) => ({
  id,
  kind: "text",
  adapter,
  ownedBy: "bench",
  created: 1,
  files: {},
  price: { inputPerMillionTokens: 200_000, outputPerMillionTokens: 750_000 },
  ...more,
})

/** Sequences of the fake engine: the number of streams in the CPU-time measurement. */
const fakeSlots = 64

/** The largest `max_tokens`; at the suite's pace longer than any of its windows. */
export const manyTokens = 4_096

const fakeModel = (id: string, isolation: "process" | "thread") =>
  entry(id, "fake", {
    options: { slots: fakeSlots, contextTokens: 2 * manyTokens },
    runtime: { load: "start", isolation },
  })

/** The fake engine twice, as a process (the default) and as a thread, and the demonstration weights as delivered. */
export const models = [
  fakeModel("fake-process", "process"),
  fakeModel("fake-thread", "thread"),
  entry("demo", "llama-gguf", {
    files: { weights: { source: demoWeights } },
    options: { contextTokens: 8192, slots: 16 },
    runtime: { load: "start" },
  }),
]

export const chatPath = "/v1/chat/completions"
export const completionsPath = "/v1/completions"

/** A chat request whose reply is defined by the script. */
export const scriptedChat = (model: string, stream: boolean, script: Readonly<Record<string, unknown>>) => ({
  model,
  stream,
  max_tokens: manyTokens,
  messages: [{ role: "user", content: `fake:${JSON.stringify(script)}` }],
})

/** Beginning of the prompts of the decode runs; a number follows. */
export const story = "Once upon a time there was a fox "

const completion = (prompt: string, seed: number) => ({
  model: "demo",
  stream: true,
  stream_options: { include_usage: true },
  prompt,
  temperature: 0.7,
  top_p: 1,
  top_k: 0,
  seed,
})

/** A reply of natural length, with the same sampling as the bare loop. */
export const storyCompletion = (seed: number) => completion(`${story}${seed}`, seed)

/**
 * A reply that runs to its last token: each token drawn becomes more likely, so the end of text is never drawn.
 * The text is nonsense; the cost is real.
 */
export const endlessCompletion = (seed: number) => ({
  ...completion(story, seed),
  max_tokens: manyTokens,
  frequency_penalty: -2,
})

/** A prompt with a reply of one token. */
export const promptAlone = (prompt: string) => ({ ...completion(prompt, 0), max_tokens: 1 })
