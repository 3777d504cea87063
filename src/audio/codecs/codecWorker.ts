// The entry of a codec thread: takes samples from CodecPool and returns bytes. Encoders are served in slices in
// rotation, so a minute of speech does not delay the first bytes of another reply.
import { parentPort } from "node:worker_threads"
import { msToSamples, speechRateHz } from "#domain/audio/Audio.ts"
import type { EncoderId, FromCodec, ToCodec, WorkerFormat } from "./CodecWire.ts"
import { loadMp3 } from "./Mp3.ts"
import { makeOggOpusEncoder } from "./OggOpus.ts"

/** 250 ms of audio take about 5 ms for Opus (50 × real time, measured), which bounds the wait for a slice. */
const sliceSamples = msToSamples(250, speechRateHz)
/**
 * The first slice of a reply; each next one is twice as long. Two Opus frames, so that the first bytes leave some
 * milliseconds earlier and follow steadily while other encoders are served.
 */
const firstSliceSamples = msToSamples(40, speechRateHz)

interface WorkingEncoder {
  readonly push: (samples: Int16Array) => ReadonlyArray<Uint8Array>
  readonly finish: () => ReadonlyArray<Uint8Array>
  readonly close: () => void
}

interface Job {
  encoder: WorkingEncoder | undefined
  /** Bounded by the pool, which counts queued samples. */
  readonly queue: Array<Int16Array>
  finishing: boolean
  /** Length of its next slice at most. */
  sliceSamples: number
}

const port = parentPort
if (port === null) throw new Error("codecWorker runs as a worker thread")

const jobs = new Map<EncoderId, Job>()
let roundScheduled = false

const send = (message: FromCodec, transfer: ReadonlyArray<ArrayBuffer> = []) =>
  port.postMessage(message, transfer)

const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

const makeEncoder = async (format: WorkerFormat): Promise<WorkingEncoder> => {
  if (format === "opus") return makeOggOpusEncoder()
  const mp3 = await (await mp3Ready)(speechRateHz)
  const push = (samples: Int16Array): ReadonlyArray<Uint8Array> => {
    mp3.push(samples)
    return []
  }
  return { push, finish: mp3.finish, close: () => {} }
}

const end = (id: EncoderId, job: Job) => {
  jobs.delete(id)
  job.encoder?.close()
}

/** Processes one slice of one encoder. True if it has more to do. */
const step = (id: EncoderId, job: Job, encoder: WorkingEncoder): boolean => {
  const next = job.queue.shift()
  if (next !== undefined) {
    const most = job.sliceSamples
    job.sliceSamples = Math.min(sliceSamples, most * 2)
    if (next.length > most) job.queue.unshift(next.subarray(most))
    const slice = next.subarray(0, most)
    const bytes = joined(encoder.push(slice))
    send({ t: "bytes", id, bytes, samples: slice.length }, [bytes.buffer])
  } else if (job.finishing) {
    const bytes = joined(encoder.finish())
    end(id, job)
    send({ t: "bytes", id, bytes, samples: 0 }, [bytes.buffer])
    send({ t: "finished", id })
    return false
  }
  return job.queue.length > 0 || job.finishing
}

const takeTurns = () => {
  roundScheduled = false
  let more = false
  for (const [id, job] of jobs) {
    if (job.encoder === undefined) continue
    try {
      more = step(id, job, job.encoder) || more
    } catch (cause) {
      jobs.delete(id)
      send({ t: "failed", id, detail: String(cause) })
    }
  }
  if (more) schedule()
}

// setImmediate lets messages (an abort, another encoder's first samples) arrive between two rounds.
const schedule = () => {
  if (roundScheduled) return
  roundScheduled = true
  setImmediate(takeTurns)
}

const open = (id: EncoderId, format: WorkerFormat) => {
  const job: Job = { encoder: undefined, queue: [], finishing: false, sliceSamples: firstSliceSamples }
  jobs.set(id, job)
  makeEncoder(format).then(
    (encoder) => {
      job.encoder = encoder
      if (jobs.get(id) === job) schedule()
      else encoder.close()
    },
    (cause: unknown) => {
      if (jobs.delete(id)) send({ t: "failed", id, detail: String(cause) })
    },
  )
}

port.on("message", (message: ToCodec) => {
  if (message.t === "open") return open(message.id, message.format)
  const job = jobs.get(message.id)
  if (job === undefined) return
  if (message.t === "abort") return end(message.id, job)
  if (message.t === "push") job.queue.push(message.samples)
  else job.finishing = true
  schedule()
})

// Compiles both codecs before the first request, which would otherwise wait 2 to 100 ms.
const mp3Ready = loadMp3()
const warmUp = async (): Promise<void> => {
  const opus = await makeOggOpusEncoder()
  opus.close()
  await mp3Ready
  send({ t: "up" })
}
void warmUp()
