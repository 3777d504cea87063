// The door of a codec thread: takes samples from CodecPool, gives back bytes. Encoders take turns in slices, so a
// minute of speech handed in at once does not hold up the first sound of another reply. It knows no request.
import { parentPort } from "node:worker_threads"
import { msToSamples, SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"
import type { EncoderId, FromCodec, ToCodec, WorkerFormat } from "./CodecWire.ts"
import { loadMp3 } from "./Mp3.ts"
import { makeOggOpusEncoder } from "./OggOpus.ts"

/** 250 ms of audio is about 5 ms of work for Opus (50 × real time measured): the longest wait for one's turn. */
const SLICE_SAMPLES = msToSamples(250, SPEECH_RATE_HZ)
/**
 * The first slice of a reply, each next one twice as long: two Opus frames, so that somebody hears something a few
 * milliseconds sooner, and goes on hearing while others take their turns.
 */
const FIRST_SLICE_SAMPLES = msToSamples(40, SPEECH_RATE_HZ)

interface WorkingEncoder {
  readonly push: (samples: Int16Array) => ReadonlyArray<Uint8Array>
  readonly finish: () => ReadonlyArray<Uint8Array>
  readonly close: () => void
}

interface Job {
  encoder: WorkingEncoder | undefined
  /** Bounded by the pool, which counts what is outstanding. */
  readonly queue: Array<Int16Array>
  finishing: boolean
  /** Of its next slice, at most. */
  sliceSamples: number
}

const port = parentPort
if (port === null) throw new Error("codecWorker runs as a worker thread")

const jobs = new Map<EncoderId, Job>()
let turnScheduled = false

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
  const mp3 = await (await mp3Ready)(SPEECH_RATE_HZ)
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

/** One slice of one encoder; true when it has more to do. */
const step = (id: EncoderId, job: Job, encoder: WorkingEncoder): boolean => {
  const next = job.queue.shift()
  if (next !== undefined) {
    const most = job.sliceSamples
    job.sliceSamples = Math.min(SLICE_SAMPLES, most * 2)
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
  turnScheduled = false
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

// setImmediate lets messages (an abort, another encoder's first samples) in between two rounds.
const schedule = () => {
  if (turnScheduled) return
  turnScheduled = true
  setImmediate(takeTurns)
}

const open = (id: EncoderId, format: WorkerFormat) => {
  const job: Job = { encoder: undefined, queue: [], finishing: false, sliceSamples: FIRST_SLICE_SAMPLES }
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

// Both codecs are compiled before the first request asks: 2 to 100 ms that no listener should wait for.
const mp3Ready = loadMp3()
makeOggOpusEncoder().close()
await mp3Ready
send({ t: "up" })
