// Requests to /v1/audio/transcriptions for tests: a file, query parameters, form fields, and the answer.
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { builtInModel } from "../nodes/BuiltInModels.ts"
import { eventually, type TestNode } from "../nodes/TestNode.ts"

export const path = "/v1/audio/transcriptions"
export const model = "stt-large-v3-turbo"

/** The built-in recogniser, in memory from the start. */
export const whisper = builtInModel(model, { runtime: { load: "start" } })

export interface Asked {
  readonly query?: Readonly<Record<string, string>>
  readonly fields?: ReadonlyArray<readonly [string, string]>
  readonly key?: string
  readonly signal?: AbortSignal
}

export interface Target {
  readonly base: string
  readonly key: string
}

export const transcribe = (
  { base, key }: Target,
  file: Uint8Array<ArrayBuffer>,
  { fields = [], query = {}, signal }: Omit<Asked, "key"> = {},
): Promise<Response> => {
  const form = new FormData()
  for (const [name, value] of fields) form.append(name, value)
  form.append("file", new File([file], "speech.bin"))
  return fetch(`${base}${path}?${new URLSearchParams(query)}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: form,
    ...(signal === undefined ? {} : { signal }),
  })
}

/** Sends the request to a node of this process, with the development key unless another is given. */
export const post = (node: TestNode, file: Uint8Array<ArrayBuffer>, asked: Asked = {}): Promise<Response> =>
  transcribe({ base: node.base, key: asked.key ?? node.keys.dev }, file, asked)

interface Polled {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

export const poll = async (
  { base, key }: Target,
  jobId: string,
  method: "GET" | "DELETE" = "GET",
): Promise<Polled> => {
  const response = await fetch(`${base}${path}?job_id=${jobId}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

export const targetOf = (node: TestNode, key = node.keys.dev): Target => ({ base: node.base, key })

/** Submits a job and returns its id; throws if it was not accepted. */
export const submit = async (
  target: Target,
  file: Uint8Array<ArrayBuffer>,
  query: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const response = await transcribe(target, file, { query: { model, ...query } })
  const body = (await response.json()) as { job_id?: string }
  if (response.status !== 202 || body.job_id === undefined) {
    throw new Error(`not accepted: ${response.status} ${JSON.stringify(body)}`)
  }
  return body.job_id
}

/** Polls until the job is in none of the waiting states. */
export const untilDone = async (target: Target, jobId: string): Promise<Polled> => {
  for (;;) {
    const polled = await poll(target, jobId)
    if (polled.status !== 202) return polled
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Files of requests and jobs: uploads and decoded audio. */
const spooled = (dataDir: string): ReadonlyArray<string> => {
  try {
    return readdirSync(join(dataDir, "uploads"))
  } catch {
    return []
  }
}

export const uploads = (dataDir: string): ReadonlyArray<string> =>
  spooled(dataDir).filter((name) => !name.endsWith(".f32"))

/** The same without decoded audio. */
export const untilNoUploads = (dataDir: string): Promise<void> =>
  eventually(() => spooled(dataDir).length === 0, "no upload is left")

/** Charged transcription of an organization: requests and milliseconds of audio. */
export const metered = (node: TestNode, org: string): Promise<{ requests: number; audioMs: number }> =>
  node.run(
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const { id } = yield* (yield* Accounts).showOrg(org)
      const rows = (yield* ledger.usage(id, 0)).filter(({ kind }) => kind === "transcription")
      return {
        requests: rows.reduce((sum, row) => sum + row.requests, 0),
        audioMs: rows.reduce((sum, row) => sum + row.audioMs, 0),
      }
    }),
  )
