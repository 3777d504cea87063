// Speech requests of the load client: one synthesized text, and many streams started at once to measure how many the
// node admits and whether their playback has gaps. Audio is PCM, 24 kHz, mono, 16 bits.
import { isAborted, postStream, Refused } from "./Http.ts"
import type { PlayResult, PlayTask, SpeakResult, SpeakTask, Target, Voice } from "./Tasks.ts"

const bytesPerMs = (24_000 * 2) / 1000

const speech = (
  target: Target,
  { fields, model }: Voice,
  asked: { readonly text: string; readonly stream: boolean; readonly signal: AbortSignal },
  onChunk: (chunk: Buffer) => void,
): Promise<void> =>
  postStream(
    target,
    {
      path: "/v1/audio/speech",
      signal: asked.signal,
      json: { model, ...fields, input: asked.text, response_format: "pcm", stream: asked.stream },
    },
    onChunk,
  )

export const runSpeak = async (target: Target, task: SpeakTask): Promise<SpeakResult> => {
  const signal = AbortSignal.timeout(task.deadlineMs)
  const beganMs = performance.now()
  let firstMs: number | undefined
  let bytes = 0
  await speech(target, task.voice, { text: task.text, stream: task.stream, signal }, (chunk) => {
    firstMs ??= performance.now()
    bytes += chunk.length
  })
  const endMs = performance.now()
  return {
    firstAudioMs: (firstMs ?? endMs) - beganMs,
    tookMs: endMs - beganMs,
    audioMs: bytes / bytesPerMs,
  }
}

/** A shorter gap does not count: a client's buffer bridges it. */
const bridgedMs = 20

export const runPlay = async (target: Target, task: PlayTask): Promise<PlayResult> => {
  const signal = AbortSignal.timeout(task.deadlineMs)
  const beganMs = performance.now()
  const firstAudioMs: Array<number> = []
  let refused = 0
  let ranDry = 0
  await Promise.all(
    Array.from({ length: task.streams }, async () => {
      let firstMs: number | undefined
      let bytes = 0
      let dry = false
      try {
        await speech(target, task.voice, { text: task.text, stream: true, signal }, (chunk) => {
          const nowMs = performance.now()
          if (firstMs === undefined) {
            firstMs = nowMs
            firstAudioMs.push(nowMs - beganMs)
          }
          if (nowMs - firstMs - bytes / bytesPerMs > bridgedMs) dry = true
          bytes += chunk.length
        })
      } catch (error) {
        if (error instanceof Refused && error.status === 503) refused++
        else if (!isAborted(signal, error)) throw error
        // A stream that was still playing when the measurement ended may have had a gap too.
        else if (firstMs !== undefined && performance.now() - firstMs - bytes / bytesPerMs > bridgedMs)
          dry = true
      }
      if (dry) ranDry++
    }),
  )
  return { refused, firstAudioMs, ranDry }
}
