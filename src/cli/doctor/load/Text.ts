// Text requests of the load client: prompts whose first token is measured, replies that run until they are stopped, and
// one whole reply. All of them stream over /v1/completions, so that a prompt is exactly the sent text.
import type { Target } from "#harness/client/Exchange.ts"
import { isUnfinished, RequestFailed } from "#harness/client/Failures.ts"
import { ChatReply, streamed } from "#harness/client/TextRequest.ts"
import type { Run } from "./Tasks.ts"

interface Asked {
  readonly model: string
  readonly prompt: string
  readonly maxTokens: number
  /** Makes each drawn token more likely, so that the end of the text is not drawn and the reply has its full length. */
  readonly endless: boolean
  readonly signal: AbortSignal
  /** Called for each piece of text. The node sends one per token. */
  readonly onText?: (atMs: number) => void
}

interface Completed {
  readonly promptTokens: number
  readonly completionTokens: number
  /** A token may be half a character, or the end of the text: then the end of the reply. */
  readonly firstAtMs: number
  readonly endAtMs: number
}

/** One streamed completion with the usage that the node sends at the end. */
const complete = async (target: Target, asked: Asked): Promise<Completed> => {
  const reply = new ChatReply(asked.onText)
  const fields = {
    model: asked.model,
    prompt: asked.prompt,
    max_tokens: asked.maxTokens,
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0.7,
    ...(asked.endless ? { frequency_penalty: -2 } : {}),
  }
  const endAtMs = await streamed(target, { path: "/v1/completions", fields }, reply, asked.signal)
  const { completionTokens, pieces, promptTokens } = reply
  if (promptTokens === undefined || completionTokens === undefined)
    throw new RequestFailed("wrong reply", "the stream has no usage")
  return { promptTokens, completionTokens, firstAtMs: pieces[0] ?? endAtMs, endAtMs }
}

/** The API's limit of `max_tokens` (protocol 7.1). */
const mostTokens = 4096

export const runPrompts: Run<"prompts"> = async (target, { deadlineMs, model, prompts }) => {
  const signal = AbortSignal.timeout(deadlineMs)
  const beganMs = performance.now()
  let lastMs = beganMs
  const answers = await Promise.all(
    prompts.map(async (prompt) => {
      try {
        const asked = { model, prompt, maxTokens: 1, endless: false, signal }
        const { firstAtMs, promptTokens } = await complete(target, asked)
        lastMs = Math.max(lastMs, firstAtMs)
        return [{ firstTokenMs: firstAtMs - beganMs, promptTokens }]
      } catch (error) {
        if (isUnfinished(error)) return []
        throw error
      }
    }),
  )
  return { answered: answers.flat(), tookMs: lastMs - beganMs }
}

export const runReplies: Run<"replies"> = async (target, task) => {
  const controller = new AbortController()
  const { signal } = controller
  const overdue = setTimeout(() => controller.abort(), task.deadlineMs)
  const beganMs = performance.now()
  const firstTokenMs: Array<number> = []
  let window: { readonly fromMs: number; readonly began: number; tokens: number } | undefined
  let finished = { texts: 0, tokens: 0 }
  const count = () => {
    if (window !== undefined || firstTokenMs.length === 0) return
    window = { fromMs: performance.now(), began: firstTokenMs.length, tokens: 0 }
    setTimeout(() => controller.abort(), task.windowMs)
  }
  const lastCall = setTimeout(count, Math.max(0, task.deadlineMs - task.windowMs))
  const stream = async (prompt: string): Promise<void> => {
    let isFirst = true
    while (!signal.aborted) {
      let own = 0
      const onText = (atMs: number) => {
        own++
        if (window !== undefined) window.tokens++
        if (!isFirst) return
        isFirst = false
        firstTokenMs.push(atMs - beganMs)
        if (firstTokenMs.length === task.running) count()
      }
      try {
        const asked = { model: task.model, prompt, maxTokens: mostTokens, endless: true, signal, onText }
        const { completionTokens } = await complete(target, asked)
        finished = { texts: finished.texts + own, tokens: finished.tokens + completionTokens }
      } catch (error) {
        if (isUnfinished(error)) return
        throw error
      }
    }
  }
  try {
    await Promise.all(task.prompts.map(stream))
  } finally {
    clearTimeout(overdue)
    clearTimeout(lastCall)
    controller.abort()
  }
  if (window === undefined || window.tokens === 0) return { firstTokenMs, counted: undefined }
  // Some tokens produce no text of their own. Replies that have ended show how many tokens there are per text.
  const tokensEach = finished.texts === 0 ? 1 : finished.tokens / finished.texts
  const tookMs = performance.now() - window.fromMs
  return { firstTokenMs, counted: { tokens: window.tokens * tokensEach, tookMs, began: window.began } }
}

export const runReply: Run<"reply"> = async (target, { deadlineMs, maxTokens, model, prompt }) => {
  const signal = AbortSignal.timeout(deadlineMs)
  const beganMs = performance.now()
  const asked = { model, prompt, maxTokens, endless: true, signal }
  const { endAtMs, firstAtMs, ...usage } = await complete(target, asked)
  return { ...usage, firstTokenMs: firstAtMs - beganMs, tookMs: endAtMs - beganMs }
}
