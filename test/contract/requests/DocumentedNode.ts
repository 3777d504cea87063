// The three roles with fake engines, and what requests to them need to know: keys, ids of models and voices, an audio file.
import { Effect } from "effect"
import * as OpenApi from "effect/http-api/OpenApi"
import fc from "fast-check"
import { AuthApi } from "#api/declared/AuthApi.ts"
import { RouterApi } from "#api/declared/RouterApi.ts"
import { chirp, wavBytes } from "../../support/audio/AudioFiles.ts"
import { fakeClone, fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startRoles } from "../../support/nodes/TestRoles.ts"
import { type ApiDocument, type Operation, operationsOf } from "../../support/wire/ApiDocument.ts"
import type { Known, Target } from "./DocumentedRequests.ts"

export interface DocumentedNode {
  readonly target: Target
  readonly stop: () => Promise<void>
}

export const hears = {
  ...fakeModel,
  id: "hears",
  kind: "transcription",
  adapter: "fake-transcription",
  options: { scripted: false },
  price: { perMinute: 1_000 },
}
export const embeds = {
  ...fakeModel,
  id: "embeds",
  kind: "embedding",
  adapter: "fake-embedding",
  price: { inputPerMillionTokens: 1_000 },
}

const models = [
  // Few tokens, so that replies are short.
  { ...fakeModel, options: { slots: 4, contextTokens: 64 } },
  {
    ...fakeModel,
    id: "owner/sees",
    options: { slots: 4, contextTokens: 64, pictures: { maxPixels: 1_000_000 } },
  },
  fakeVoice,
  fakeClone,
  hears,
  embeds,
]

/** A PNG of one red pixel. */
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="

/** Ids of models that an operation is for, by its path; the operators' are for all. */
const idsFor = ({ path }: Operation): fc.Arbitrary<string> => {
  const ids = models.map(({ id }) => id)
  const kinds: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["/v1/audio/transcriptions", ["hears"]],
    ["/v1/audio/", ["fake-voice", "fake-clone"]],
    ["/v1/embeddings", ["embeds"]],
    ["/v1/models", ids],
    ["/v1/gpu", ids],
  ]
  const [, fitting] = kinds.find(([start]) => path.startsWith(start)) ?? ["", ["fake", "owner/sees"]]
  return fc.oneof({ arbitrary: fc.constantFrom(...fitting), weight: 19 }, fc.constantFrom(...ids))
}

const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } }

const conversations: ReadonlyArray<ReadonlyArray<unknown>> = [
  [{ role: "user", content: "hi" }],
  [
    { role: "system", content: "be brief" },
    { role: "user", content: 'fake:{"tokens":2}' },
  ],
  [
    { role: "user", content: "time?" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "noon" },
  ],
  [{ role: "user", content: [{ type: "image_url", image_url: { url: pixel } }] }],
]

const toolName = fc.constantFrom("f", "get_time")

/** Likely values of fields of JSON bodies. */
const fieldsOf = (operation: Operation): Known => ({
  model: idsFor(operation),
  model_name: idsFor(operation),
  models: fc.subarray(models.map(({ id }) => id)),
  messages: fc.constantFrom(...conversations),
  role: fc.constantFrom("user", "assistant", "system"),
  max_tokens: fc.integer({ min: 1, max: 8 }),
  max_completion_tokens: fc.integer({ min: 1, max: 8 }),
  max_output_tokens: fc.integer({ min: 1, max: 64 }),
  voice: fc.constantFrom("fake", "default", "alloy"),
  url: fc.constant(pixel),
  name: toolName,
  arguments: fc.constant('{"a":1}'),
  parameters: fc.constantFrom({ type: "object", properties: { a: { type: "integer" } } }, {}),
  content: fc.constantFrom("hi", 'fake:{"tokens":2}', [{ type: "text", text: "hi" }]),
  input: fc.constantFrom("Hello there.", "hi"),
  prompt: fc.constantFrom("Hello there.", 'fake:{"tokens":2}'),
})

/** Likely values of parameters and of form fields. */
const textsOf =
  (jobs: ReadonlyArray<string>) =>
  (operation: Operation): Known => ({
    model: idsFor(operation),
    id: idsFor(operation),
    response_format: fc.constantFrom("json", "text", "srt", "vtt", "verbose_json"),
    language: fc.constantFrom("en", "fr", "xx"),
    stream: fc.boolean(),
    sync: fc.boolean(),
    include_timing: fc.boolean(),
    punctuation: fc.boolean(),
    temperature: fc.constantFrom(0, 0.5, 1, 2),
    "timestamp_granularities[]": fc.constantFrom("word", "segment"),
    scope: fc.constantFrom("global", "country"),
    after: fc.constantFrom("0", "5", "-1", "1e9"),
    job_id: fc.oneof({ arbitrary: fc.constantFrom(...jobs), weight: 4 }, fc.uuid()),
  })

/** Jobs that requests can poll and cancel. */
const startJobs = (base: string, key: string, file: Uint8Array): Promise<ReadonlyArray<string>> =>
  Promise.all(
    Array.from({ length: 8 }, async () => {
      const form = new FormData()
      form.append("file", new Blob([Buffer.from(file)]), "audio.wav")
      const response = await fetch(`${base}/v1/audio/transcriptions?model=hears`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: form,
      })
      return ((await response.json()) as { readonly job_id: string }).job_id
    }),
  )

export const startDocumented = async (): Promise<DocumentedNode> => {
  const roles = await startRoles({ roles: "edge,auth,router", devKey: "off" }, models)
  const { broke, good, revoked, superadmin } = await roles.accounts((accounts) =>
    Effect.gen(function* () {
      const good = yield* accounts.createKey({ org: "good" })
      yield* accounts.createOrg({ name: "ops", paymentMethod: true })
      const superadmin = yield* accounts.createKey({ org: "ops", scope: "superadmin" })
      yield* accounts.createOrg({ name: "broke" })
      const broke = yield* accounts.createKey({ org: "broke" })
      const revoked = yield* accounts.createKey({ org: "good", user: "gone" })
      yield* accounts.revokeKey(revoked.keyId)
      return { good, superadmin, broke, revoked }
    }),
  )
  const served = (await (await fetch(`${roles.base.edge}/openapi.json`)).json()) as ApiDocument
  // The listeners of the other roles serve no document.
  const byRole = [
    [roles.base.edge, operationsOf(served)],
    [roles.base.auth, operationsOf(OpenApi.fromApi(AuthApi) as unknown as ApiDocument)],
    [roles.base.router, operationsOf(OpenApi.fromApi(RouterApi) as unknown as ApiDocument)],
  ] as const
  const ports = new Map<Operation, number>(
    byRole.flatMap(([base, operations]) => operations.map((each) => [each, Number(new URL(base).port)])),
  )
  const speech = wavBytes(chirp(8_000, 16_000), 16_000, "16")
  const jobs = await startJobs(roles.base.edge, good.apiKey, speech)
  return {
    target: {
      operations: [...ports.keys()],
      portOf: (operation) => ports.get(operation) ?? 0,
      keys: [good.apiKey, superadmin.apiKey],
      otherKeys: [broke.apiKey, revoked.apiKey],
      fields: fieldsOf,
      texts: textsOf(jobs),
      files: [speech, wavBytes(chirp(0, 16_000), 16_000, "16")],
    },
    stop: roles.stop,
  }
}
