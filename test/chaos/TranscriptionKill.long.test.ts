// kill -9 of the whole node at random points while it takes, decodes and transcribes jobs: after the last restart every
// accepted job has been done, once, with the text of an undisturbed run, and the ledger holds its decoded time, once.
// CHAOS_KILLS and CHAOS_JOBS set how often.
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, describe, expect, it } from "vitest"
import { longWav } from "../support/audio/SpeechClips.ts"
import {
  model,
  poll,
  submit,
  transcribe,
  untilDone,
  untilNoUploads,
  whisper,
} from "../support/clients/TranscriptionClient.ts"
import { type NodeProcess, startProcess } from "../support/nodes/NodeProcess.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { temporaryDir } from "../support/nodes/TestNode.ts"

type Bytes = Uint8Array<ArrayBuffer>
const kills = Number(process.env.CHAOS_KILLS ?? 10)
const jobCount = Number(process.env.CHAOS_JOBS ?? 8)
/** The moment from which the delay of a kill counts: the node listens, or it works at a job. A window takes some 50 ms. */
const longestRestMs = 400
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000)

/** Park and Miller's generator: a run can be repeated by its seed. */
const randoms = (from: number) => {
  let state = (from % 2_147_483_646) + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

const dir = temporaryDir()
afterAll(() => dir.remove())

/** Three lengths, so that some jobs are one window and some are many. */
const files = [4, 13, 37].map((seconds) => ({ seconds, bytes: longWav(seconds) as Bytes }))

const start = (): Promise<NodeProcess> =>
  startProcess({
    models: [fakeModel, whisper],
    env: { EDGEWISE_DATA_DIR: dir.path, EDGEWISE_LOG_LEVEL: "none" },
  })

interface Ledger {
  readonly jobs: ReadonlyMap<string, string>
  readonly receipts: ReadonlyMap<string, number>
}

const readStore = (): Ledger => {
  const db = new DatabaseSync(join(dir.path, "store.sqlite"), { readOnly: true })
  try {
    const jobs = db.prepare("SELECT id, status FROM transcription_jobs").all() as Array<
      Record<string, string>
    >
    const receipts = db
      .prepare("SELECT receipt_id, audio_ms FROM usage_ledger WHERE kind = 'transcription'")
      .all() as Array<{ receipt_id: string; audio_ms: number }>
    return {
      jobs: new Map(jobs.map(({ id = "", status = "" }) => [id, status])),
      receipts: new Map(receipts.map(({ audio_ms, receipt_id }) => [receipt_id, audio_ms])),
    }
  } finally {
    db.close()
  }
}

describe("kill -9 of a node at work", () => {
  it(`${kills} times during ${jobCount} jobs loses, repeats and overcharges nothing (seed ${seed})`, async () => {
    const random = randoms(seed)
    /** Ids that a client received, and which file each is. */
    const accepted = new Map<string, number>()
    /** Kills that interrupted a running job, read from the store afterwards. */
    let struck = 0
    for (let kill = 0; kill < kills; kill++) {
      const node = await start()
      const target = { base: node.base, key: node.devKey }
      const restMs = random() * longestRestMs
      const atWork = random() < 0.6
      const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
      const untilOneIsHeard = async () => {
        for (;;) {
          const states = await Promise.all([...accepted.keys()].map((id) => poll(target, id)))
          if (states.some(({ body }) => body.status === "processing")) return
          if (states.every(({ status }) => status === 200)) return
          await pause(5)
        }
      }
      const death = (async () => {
        if (atWork) await untilOneIsHeard()
        await pause(restMs)
        await node.dispose()
      })()
      // Jobs are posted while the node is about to be killed: some answers never arrive, and those jobs are not checked.
      // Spread over all kills, or the last ones would hit a node without work.
      while (accepted.size < Math.ceil((jobCount * (kill + 1)) / kills)) {
        const which = accepted.size % files.length
        const id = await submit(target, files[which]!.bytes).catch(() => undefined)
        if (id === undefined) break
        accepted.set(id, which)
      }
      await death
      if ([...readStore().jobs.values()].includes("processing")) struck++
    }
    console.info(`${struck} of ${kills} kills met a job in work`)

    const node = await start()
    const target = { base: node.base, key: node.devKey }
    while (accepted.size < jobCount) {
      const which = accepted.size % files.length
      accepted.set(await submit(target, files[which]!.bytes), which)
    }
    const texts = new Map<number, string>()
    for (const [which, { bytes }] of files.entries()) {
      const response = await transcribe(target, bytes, { query: { model, sync: "true" } })
      texts.set(which, ((await response.json()) as { text: string }).text)
    }
    for (const [id, which] of accepted) {
      const done = await untilDone(target, id)
      expect(done).toEqual({
        status: 200,
        body: { text: texts.get(which), job_id: id, status: "completed" },
      })
    }
    // Jobs whose acceptance never reached a client are done all the same.
    const orphans = [...readStore().jobs].filter(([id]) => !accepted.has(id))
    for (const [id] of orphans) expect((await untilDone(target, id)).status).toBe(200)
    // The row is updated first, then the upload is removed.
    await untilNoUploads(dir.path)
    node.signal("SIGTERM")
    await node.exited
    const { jobs, receipts } = readStore()
    expect(new Set(jobs.values())).toEqual(new Set(["completed"]))
    const allowed = new Set(files.map(({ seconds }) => seconds * 1000))
    for (const id of jobs.keys()) expect(allowed.has(receipts.get(id) ?? 0), id).toBe(true)
    for (const [id, which] of accepted) expect(receipts.get(id)).toBe(files[which]!.seconds * 1000)
    // One receipt for each job, and one for each interactive file; there was no interactive work before a kill.
    expect(receipts.size).toBe(jobs.size + files.length)
    await node.dispose()
  })
})
