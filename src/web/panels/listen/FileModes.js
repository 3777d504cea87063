// A file transcribed in one answer, as a stream, or as a job.
import { jsonEvents } from "../../api/Events.js"
import { Problem } from "../../api/Problems.js"
import { upload } from "../../api/Upload.js"
import { cuesOfSegments } from "../../voice/captions/Cues.js"

/**
 * @typedef {object} FileRequest
 * @property {import("../../api/Client.js").Client} client
 * @property {string} query parameters of the request, without the mode
 * @property {File} file
 * @property {AbortSignal} signal
 * @property {import("../../api/Receipts.js").Stopwatch} watch
 * @property {ReturnType<typeof import("./Transcript.js").makeTranscript>} shown
 */

/** @param {File} file */
const formOf = (file) => {
  const form = new FormData()
  form.append("file", file)
  return form
}

const path = "/v1/audio/transcriptions"

/** @typedef {{ text: string, seconds: number, cues: ReturnType<typeof cuesOfSegments> | undefined, note: string }} FileResult */

/** @param {any} body @returns {FileResult} */
const resultOf = (body) => ({
  text: body.text,
  seconds: body.duration,
  cues: cuesOfSegments(body.segments),
  note: "",
})

/** @param {FileRequest} request @returns {Promise<FileResult>} */
export const inOneAnswer = async ({ client, file, query, shown, signal, watch }) => {
  shown.progress(undefined)
  const response = await client.fetch(`${path}?${query}&sync=true&response_format=verbose_json`, {
    body: formOf(file),
    signal,
  })
  watch.answered(response)
  watch.first()
  return resultOf(await response.json())
}

/** @param {FileRequest} request @returns {Promise<FileResult>} */
export const asStream = async ({ client, file, query, shown, signal, watch }) => {
  shown.progress(undefined)
  const response = await client.fetch(`${path}?${query}&stream=true`, { body: formOf(file), signal })
  watch.answered(response)
  let text = ""
  if (response.body === null) throw new Error("the answer has no body")
  /** @type {FileResult | undefined} */
  let result
  const note = "A stream has no times: choose another way to transcribe the file for SRT and VTT."
  for await (const event of jsonEvents(response.body)) {
    if (event.type === "error") throw new Problem(`The transcription failed: ${event.error}.`)
    if (event.type === "transcript.text.delta") {
      watch.first()
      text += event.delta
      shown.text(text, "")
    }
    if (event.type === "transcript.text.done")
      result = { text: String(event.text), seconds: Number(event.duration), cues: undefined, note }
  }
  if (result === undefined) throw new Problem("The transcription ended without a result: try again.")
  return result
}

/** Between two polls. The user's rate is 100 requests a minute, so the node's 500 ms would use it up. */
const firstPollMs = 1_000
const longestPollMs = 3_000

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      reject(new DOMException("stopped", "AbortError"))
    })
  })

/**
 * Polls a job until it ends. Aborting stops the polls, not the job.
 * @param {Omit<FileRequest, "file" | "query">} request
 * @param {string} jobId
 * @returns {Promise<FileResult>}
 */
export const followJob = async ({ client, shown, signal, watch }, jobId) => {
  shown.progress(undefined)
  for (let waitMs = firstPollMs; ; waitMs = Math.min(waitMs * 1.3, longestPollMs)) {
    const job = await client.json(`${path}?job_id=${jobId}`, { signal })
    if (job.status === "completed") return resultOf(job)
    const why = job.detail === undefined ? "" : `: ${job.detail}`
    shown.status(`Job ${job.status}${why}, ${Math.round(watch.elapsedMs / 1000)} s`)
    await pause(waitMs, signal)
  }
}

/**
 * @param {FileRequest} request
 * @param {(jobId: string) => void} onAccepted
 * @returns {Promise<FileResult>}
 */
export const asJob = async (request, onAccepted) => {
  const { client, file, query, shown, signal } = request
  shown.progress(0)
  const accepted = await upload(client, `${path}?${query}&response_format=verbose_json`, formOf(file), {
    signal,
    onProgress: (share) => {
      shown.progress(share)
      shown.status(share < 1 ? `Uploading, ${Math.round(share * 100)} %` : "Uploaded")
    },
  })
  request.watch.receiptId = accepted.job_id
  onAccepted(accepted.job_id)
  return followJob(request, accepted.job_id)
}

/** @param {import("../../api/Client.js").Client} client @param {string} jobId */
export const cancelJob = (client, jobId) => client.json(`${path}?job_id=${jobId}`, { method: "DELETE" })
