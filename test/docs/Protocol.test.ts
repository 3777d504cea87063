// docs/protocol says what the code does: the same endpoints, fields, errors, and every section that code cites
// exists. Values come from the code; what the pages say about them is read by ProtocolPages.
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as OpenApi from "effect/http-api/OpenApi"
import { describe, expect, it } from "vitest"
import { knownPaths as authPaths } from "#api/AuthRoutes.ts"
import { EdgeApi } from "#api/declared/EdgeApi.ts"
import { knownPaths as edgePaths } from "#api/EdgeRoutes.ts"
import { HealthRecord } from "#api/operations/Health.ts"
import { ModelListEntry, ModelStatusRecord } from "#api/operations/Models.ts"
import { knownPaths as routerPaths } from "#api/RouterRoutes.ts"
import { ChatRequest } from "#domain/wire/Chat.ts"
import { CompletionRequest } from "#domain/wire/Completion.ts"
import { EmbeddingRequest } from "#domain/wire/Embeddings.ts"
import * as Errors from "#domain/wire/Errors.ts"
import { type EdgeError, failureOf } from "#domain/wire/Failures.ts"
import { LiveParameters } from "#domain/wire/LiveParameters.ts"
import { ResponsesRequest } from "#domain/wire/responses/Request.ts"
import { SpeechRequest } from "#domain/wire/Speech.ts"
import { TranscriptionParameters } from "#domain/wire/Transcription.ts"
import { problemOf } from "#http/ErrorBody.ts"
import { type KnownPaths, unmatched } from "#http/NotFound.ts"
import { maxFileBytes } from "#services/TranscriptionUpload.ts"
import { framingFlaw } from "#transport/Framing.ts"
import { listenerReplies } from "../support/wire/ReplyHeaders.ts"
import { endpointsOf, index, namesOf, quotedIn, rowsOf, sections } from "./ProtocolPages.ts"

const sorted = (values: Iterable<string>): ReadonlyArray<string> => [...new Set(values)].toSorted()

// ---------------------------------------------------------------- sections

describe("sections", () => {
  it("are numbered without gaps, each number once", () => {
    const seen = new Map<string, number>()
    for (const { number } of sections) {
      const [chapter = "", section] = number.split(".")
      expect([number, seen.get(number)]).toEqual([number, undefined])
      seen.set(number, 1)
      const before = section === undefined || section === "1" ? chapter : `${chapter}.${Number(section) - 1}`
      if (section !== undefined) expect([number, seen.has(before)]).toEqual([number, true])
    }
    const chapters = sections
      .filter(({ number }) => !number.includes("."))
      .map(({ number }) => Number(number))
    expect(chapters.toSorted((a, b) => a - b)).toEqual(chapters.map((_, at) => at + 1))
  })

  it("are listed in the index by chapter", () => {
    const rows = [...index.matchAll(/^\| (\d+) \| \[([^\]]+)\]\(([^)]+)\) \|$/gm)]
    const listed = rows.map(([, number, title, file]) => `${number} ${title} ${file}`)
    const chapters = sections
      .filter(({ number }) => !number.includes("."))
      .map(({ file, number, title }) => `${number} ${title} ${file}`)
    expect(listed.toSorted()).toEqual(chapters.toSorted())
  })

  const exists = (number: string): boolean => sections.some((section) => section.number === number)

  it("are there where one names another", () => {
    for (const { number, text } of sections) {
      for (const [, list = ""] of text.matchAll(/\((\d+\.\d+(?:(?:,| and) \d+\.\d+)*)\)/g)) {
        for (const named of list.split(/,? (?:and )?/)) {
          expect([number, named, exists(named)]).toEqual([number, named, true])
        }
      }
    }
  })

  it("are there where code cites one", () => {
    const root = fileURLToPath(new URL("../../", import.meta.url))
    for (const folder of ["src", "actors", "engines", "bench", "test"]) {
      for (const name of readdirSync(`${root}${folder}`, { recursive: true, encoding: "utf8" })) {
        if (!name.endsWith(".ts")) continue
        const text = readFileSync(`${root}${folder}/${name}`, "utf8")
        for (const [, cited = ""] of text.matchAll(/\bprotocol (\d+\.\d+)\b/g)) {
          expect([name, cited, exists(cited)]).toEqual([name, cited, true])
        }
      }
    }
  })
})

// ---------------------------------------------------------------- endpoints

const endpointsIn = (paths: KnownPaths): ReadonlyArray<string> =>
  Object.entries(paths).flatMap(([path, methods]) =>
    methods.map((method) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`),
  )

const operations = Object.entries(OpenApi.fromApi(EdgeApi).paths).flatMap(([path, item]) =>
  (["get", "post", "put", "patch", "delete"] as const).flatMap((method) => {
    const operation = item[method]
    if (operation === undefined) return []
    return [{ endpoint: `${method.toUpperCase()} ${path}`, statuses: Object.keys(operation.responses) }]
  }),
)

describe("endpoints", () => {
  it("of the edge are those of its API, its sockets and its pages, each once", () => {
    const documented = endpointsOf([5, 6, 7, 8, 9, 10, 11, 12, 13, 18, 19])
    expect(documented.toSorted()).toEqual(
      sorted([...operations.map(({ endpoint }) => endpoint), ...endpointsIn(edgePaths)]),
    )
  })

  it("of the auth role", () => expect(endpointsOf([14]).toSorted()).toEqual(sorted(endpointsIn(authPaths))))

  it("of the router role", () => expect(endpointsOf([15])).toEqual(endpointsIn(routerPaths)))
})

// ---------------------------------------------------------------- fields

const fieldsOf = (schema: { readonly fields: object }) => sorted(Object.keys(schema.fields))

describe("fields", () => {
  it("of an upload are in the API document, with its file", () => {
    const { requestBody } = OpenApi.fromApi(EdgeApi).paths["/v1/audio/transcriptions"]?.post ?? {}
    const form = JSON.stringify(requestBody?.content?.["multipart/form-data"])
    expect(form).toContain('"file":{"type":"string","format":"binary"')
    for (const name of namesOf("9.2")) expect(form).toContain(`"${name}":{`)
  })

  it("of a picture say in the API document that its URL is a text", () => {
    const { paths } = OpenApi.fromApi(EdgeApi)
    expect(JSON.stringify(paths["/v1/chat/completions"])).toContain(
      '"image_url":{"type":"object","properties":{"url":{"type":"string"}',
    )
    expect(JSON.stringify(paths["/v1/responses"])).toContain('"image_url":{"anyOf":[{"type":"string"}')
  })

  it.each([
    ["chat", ["7.1", "7.2"], ChatRequest],
    ["completions", ["7.1", "7.4"], CompletionRequest],
    ["responses", ["7.12"], ResponsesRequest],
    ["embeddings", ["18.1"], EmbeddingRequest],
    ["speech", ["8.1"], SpeechRequest],
    ["transcription", ["9.2"], TranscriptionParameters],
    ["live transcription", ["10.1"], LiveParameters],
    ["a model", ["6.1"], ModelListEntry],
    ["models' status", ["6.3"], ModelStatusRecord],
    ["health", ["13.1"], HealthRecord],
  ] as const)("of %s have a row, and every row a field", (_, numbers, schema) => {
    expect(numbers.flatMap(namesOf).toSorted()).toEqual(fieldsOf(schema))
  })
})

// ---------------------------------------------------------------- errors

const retryAfterMs = 1_500
const model = "m"

const samples: { readonly [Tag in EdgeError["_tag"]]: Extract<EdgeError, { readonly _tag: Tag }> } = {
  AccountNotFound: new Errors.AccountNotFound({ field: "org" }),
  AtCapacity: new Errors.AtCapacity({ model, retryAfterMs }),
  AuthUnavailable: new Errors.AuthUnavailable({ retryAfterMs }),
  BodyTooLarge: new Errors.BodyTooLarge({ limitBytes: 1 }),
  CatalogRefused: new Errors.CatalogRefused({ problem: "models[0].id: is missing", mistakes: ["a", "b"] }),
  Draining: new Errors.Draining(),
  EngineFailed: new Errors.EngineFailed({ model, reason: "hung", detail: "" }),
  FileTooLarge: new Errors.FileTooLarge({ limitBytes: maxFileBytes }),
  Forbidden: new Errors.Forbidden({ scope: "superadmin" }),
  IdempotencyKeyReused: new Errors.IdempotencyKeyReused(),
  IdempotentAnswerLost: new Errors.IdempotentAnswerLost(),
  IdempotentPending: new Errors.IdempotentPending({ retryAfterMs }),
  InputTooLong: new Errors.InputTooLong({ model, maxCharacters: 1 }),
  InsufficientMemory: new Errors.InsufficientMemory({
    model,
    device: "GPU 0",
    wantedBytes: 2,
    freeBytes: 1,
    retryAfterMs,
  }),
  InvalidRequest: new Errors.InvalidRequest({ field: "model", problem: "is required" }),
  JobNotFound: new Errors.JobNotFound({ jobId: "j" }),
  CallNotFound: new Errors.CallNotFound({ isOff: false }),
  NotInstalled: new Errors.NotInstalled({ model, part: "an audio decoder" }),
  MemoryPressure: new Errors.MemoryPressure({ retryAfterMs }),
  ModelBusy: new Errors.ModelBusy({ models: [model] }),
  ModelNotLoaded: new Errors.ModelNotLoaded({ model }),
  ModelUnavailable: new Errors.ModelUnavailable({ model, retryAfterMs }),
  NoHealthyRegion: new Errors.NoHealthyRegion(),
  PaymentRequired: new Errors.PaymentRequired(),
  PromptTooLong: new Errors.PromptTooLong({ field: "prompt", promptTokens: 9, contextTokens: 8 }),
  RateLimited: new Errors.RateLimited({ retryAfterMs }),
  StoreDown: new Errors.StoreDown({ retryAfterMs }),
  SynthesisFailed: new Errors.SynthesisFailed({ model, detail: "", voices: ["af_bella"] }),
  Unauthorized: new Errors.Unauthorized({ reason: "missing" }),
  UnloadFailed: new Errors.UnloadFailed({ model, heldBytes: 1 }),
}

const errorRows = rowsOf("3.2").filter((row) => row.length === 6)
const listenerRows = rowsOf("3.2").filter((row) => row.length === 3)
const documentedStatuses = sorted(rowsOf("3.2").map(([status = ""]) => status))

/** `<n>` in a documented text stands for anything. */
const matches = (documented: string, sent: string): boolean =>
  new RegExp(
    `^${documented
      .split(/<[^>]+>/)
      .map((part) => part.replaceAll(/[.*+?^$()[\]{}|\\]/g, "\\$&"))
      .join(".+")}$`,
  ).test(sent)

describe("errors", () => {
  it("have a row each, with their status, detail and whether they say when to retry", () => {
    expect(sorted(errorRows.flatMap(([, code = ""]) => quotedIn(code)))).toEqual(sorted(Object.keys(samples)))
    for (const [status, code = "", detail = "", , retry] of errorRows) {
      const tag = quotedIn(code)[0] as EdgeError["_tag"]
      const problem = problemOf(samples[tag])
      expect([tag, status]).toEqual([tag, String(problem.status)])
      expect([tag, retry]).toEqual([tag, expect.stringMatching(`\\b${failureOf(samples[tag]).retry}$`)])
      expect([tag, retry === "after"]).toEqual([tag, problem.headers?.["retry-after"] !== undefined])
      // Tables of another section, which other tests read.
      if (/^\d/.test(detail)) continue
      expect([tag, quotedIn(detail).some((one) => matches(one, problem.detail))]).toEqual([tag, true])
    }
  })

  it("with more than a detail in their body have a row in 3.1", () => {
    const withBody = Object.values(samples).flatMap((error) => {
      const { body } = problemOf(error)
      return body === undefined ? [] : [[error._tag, Object.keys(body)] as const]
    })
    for (const [tag, keys] of withBody) {
      const row = rowsOf("3.1").find(([first = ""]) => first === `\`${tag}\``)
      for (const key of keys)
        expect([tag, quotedIn(row?.[1] ?? "")]).toEqual([tag, expect.arrayContaining([key])])
    }
    expect(withBody.map(([tag]) => tag)).toEqual(
      namesOf("3.1").filter((name) => Object.hasOwn(samples, name)),
    )
  })

  it("401 has all its details, and 500 all of a failed engine", () => {
    const unauthorized = Errors.Unauthorized.fields.reason.literals.map(
      (reason) => problemOf(new Errors.Unauthorized({ reason })).detail,
    )
    expect(namesOf("3.3").toSorted()).toEqual(sorted(unauthorized))
    const failed = Errors.EngineFailed.fields.reason.literals.map(
      (reason) => problemOf(new Errors.EngineFailed({ model, reason, detail: "" })).detail,
    )
    const row = errorRows.find(([, code]) => code === "`EngineFailed`")
    expect(quotedIn(row?.[2] ?? "").toSorted()).toEqual(sorted(failed))
  })

  it("of routing and of the listener have a row", () => {
    const answered = [
      unmatched(authPaths, { method: "OPTIONS", url: "/nowhere", headers: {} }),
      unmatched(authPaths, { method: "GET", url: "/nowhere", headers: {} }),
      unmatched(authPaths, { method: "GET", url: "/v1/auth/session", headers: {} }),
    ].map(({ status }) => status)
    const head = { method: "GET", url: "/", headers: { host: "h" } }
    const socket = { ...head.headers, upgrade: "websocket", connection: "upgrade" }
    const flaws = [
      framingFlaw({ ...head, url: "/#a" }, true),
      framingFlaw({ ...head, headers: { ...head.headers, "transfer-encoding": "chunked" } }, false),
      framingFlaw({ ...head, headers: { ...socket, "sec-websocket-version": "8" } }, true),
    ].map((flaw) => flaw?.status)
    expect([answered, flaws]).toEqual([
      [204, 404, 405],
      [400, 411, 426],
    ])
    const statuses = listenerRows.map(([status]) => status)
    for (const status of [...answered, ...flaws]) expect(statuses).toContain(String(status))
  })

  it("of the listener are those that the API declares for it, and 304 of the pages", () => {
    const declared = listenerReplies.map(({ status }) => String(status))
    expect(sorted([...declared, "304"])).toEqual(sorted(listenerRows.map(([status = ""]) => status)))
  })

  it("that the API declares stand in the tables", () => {
    const declared = sorted(operations.flatMap(({ statuses }) => statuses)).filter(
      (status) => status >= "400",
    )
    for (const status of declared) expect(documentedStatuses).toContain(status)
  })
})
