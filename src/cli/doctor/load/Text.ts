// Text requests of the load client: prompts whose first token is measured, replies that run until they are stopped, and
// one whole reply. All of them stream over /v1/completions, so that a prompt is exactly the sent text.
import { eventReader } from "../../shared/EventStream.ts"
import { isAborted, postStream } from "./Http.ts"
import type {
  PromptResult,
  PromptTask,
  ReplyOnceResult,
  ReplyOnceTask,
  ReplyResult,
  ReplyTask,
  Target,
} from "./Tasks.ts"

interface Asked {
  readonly model: string
  readonly prompt: string
  readonly maxTokens: number
  /** Makes each drawn token more likely, so that the end of the text is not drawn and the reply has its full length. */
  readonly endless: boolean
  readonly signal: AbortSignal
  /** Called for each piece of text. The node sends one per token. */
  readonly onText: () => void
}

interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
}

interface CompletionChunk {
  readonly choices?: ReadonlyArray<{ readonly text?: string }>
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null
  readonly error?: { readonly message?: string }
}

/** One streamed completion. Returns the usage that the node sends at the end. */
const complete = async (target: Target, asked: Asked): Promise<Usage> => {
  const { endless, maxTokens, model, onText, prompt, signal } = asked
  let usage: Usage | undefined
  let problem: string | undefined
  const read = eventReader((json) => {
    const chunk = JSON.parse(json) as CompletionChunk
    if (chunk.error !== undefined) problem = chunk.error.message ?? "the stream ended with an error"
    if (chunk.usage != null) {
      usage = {
        promptTokens: chunk.usage.prompt_tokens,
        completionTokens: chunk.usage.completion_tokens,
      }
    }
    if ((chunk.choices?.[0]?.text ?? "") !== "") onText()
  })
  const json = {
    model,
    prompt,
    max_tokens: maxTokens,
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0.7,
    ...(endless ? { frequency_penalty: -2 } : {}),
  }
  await postStream(target, { path: "/v1/completions", signal, json }, read)
  if (problem !== undefined || usage === undefined) throw new Error(problem ?? "the stream has no usage")
  return usage
}

/** The API's limit of `max_tokens` (protocol 7.1). */
const mostTokens = 4096

export const runPrompts = async (target: Target, task: PromptTask): Promise<PromptResult> => {
  const signal = AbortSignal.timeout(task.deadlineMs)
  const beganMs = performance.now()
  let lastMs = beganMs
  const answers = await Promise.all(
    task.prompts.map(async (prompt) => {
      let firstMs: number | undefined
      const onText = () => {
        firstMs ??= performance.now()
      }
      try {
        const { promptTokens } = await complete(target, {
          model: task.model,
          prompt,
          maxTokens: 1,
          endless: false,
          signal,
          onText,
        })
        // A token may be half a character, or the end of the text. Then the end of the reply is the time of the first
        // token.
        const atMs = firstMs ?? performance.now()
        lastMs = Math.max(lastMs, atMs)
        return [{ firstTokenMs: atMs - beganMs, promptTokens }]
      } catch (error) {
        if (isAborted(signal, error)) return []
        throw error
      }
    }),
  )
  return { answered: answers.flat(), tookMs: lastMs - beganMs }
}

export const runReplies = async (target: Target, task: ReplyTask): Promise<ReplyResult> => {
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
      const onText = () => {
        own++
        if (window !== undefined) window.tokens++
        if (!isFirst) return
        isFirst = false
        firstTokenMs.push(performance.now() - beganMs)
        if (firstTokenMs.length !== task.running) return
        count()
      }
      try {
        const { completionTokens } = await complete(target, {
          model: task.model,
          prompt,
          maxTokens: mostTokens,
          endless: true,
          signal,
          onText,
        })
        finished = { texts: finished.texts + own, tokens: finished.tokens + completionTokens }
      } catch (error) {
        if (isAborted(signal, error)) return
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

export const runReply = async (target: Target, task: ReplyOnceTask): Promise<ReplyOnceResult> => {
  const signal = AbortSignal.timeout(task.deadlineMs)
  const beganMs = performance.now()
  let firstMs: number | undefined
  const usage = await complete(target, {
    model: task.model,
    prompt: task.prompt,
    maxTokens: task.maxTokens,
    endless: true,
    signal,
    onText: () => {
      firstMs ??= performance.now()
    },
  })
  const endMs = performance.now()
  return { ...usage, firstTokenMs: (firstMs ?? endMs) - beganMs, tookMs: endMs - beganMs }
}
