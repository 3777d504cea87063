// What a server says of itself: its models, and where it has them a version and settings. Every question may fail; the answer
// then lacks a field.
import { objectOf } from "./EventStream.ts"
import { exchangeText, type Target } from "./Exchange.ts"
import { oneLine, RequestFailed } from "./Failures.ts"

const mostBytes = 8 * 2 ** 20
const patienceMs = 5_000
const mostModels = 100

export interface SelfReport {
  /** The header `Server`. */
  readonly server?: string
  readonly models?: ReadonlyArray<string>
  /** Why it did not list its models. */
  readonly modelsFailure?: string
  /** Title and version of an OpenAPI document. */
  readonly api?: string
  /** llama.cpp's `build_info`. */
  readonly build?: string
  /** llama.cpp's number of slots. */
  readonly slots?: number
  /** Requests that one caller may send in a time, as its answers' headers say; with edgewise in a minute. */
  readonly requestLimit?: number
}

const get = async (target: Target, path: string, signal: AbortSignal) => {
  let server: string | undefined
  let requestLimit: number | undefined
  const patient = { ...target, timeoutMs: Math.min(patienceMs, target.timeoutMs) }
  const text = await exchangeText(patient, { method: "GET", path, signal }, mostBytes, ({ headers }) => {
    server = typeof headers.server === "string" ? headers.server : undefined
    const limit = Number(headers["x-ratelimit-limit"] ?? headers["x-ratelimit-limit-requests"] ?? Number.NaN)
    if (Number.isFinite(limit)) requestLimit = limit
  })
  return { body: objectOf(text), server, requestLimit, failure: undefined }
}

const short = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? oneLine(value) : undefined

const idsOf = (body: Readonly<Record<string, unknown>> | undefined): ReadonlyArray<string> | undefined => {
  if (!Array.isArray(body?.data)) return undefined
  const ids = body.data.map((one: unknown) => short((one as { readonly id?: unknown } | null)?.id))
  return ids.filter((id) => id !== undefined).slice(0, mostModels)
}

/** Fails only if nothing listens there, or the key is refused. */
export const selfReport = async (target: Target, signal: AbortSignal): Promise<SelfReport> => {
  const asked = async (path: string) => {
    try {
      return await get(target, path, signal)
    } catch (cause) {
      if (!(cause instanceof RequestFailed) || ["unreachable", "401", "403"].includes(cause.key)) throw cause
      return {
        body: undefined,
        server: undefined,
        requestLimit: undefined,
        failure: `${cause.message} (${cause.key})`,
      }
    }
  }
  const models = await asked("/v1/models")
  const optional = (path: string) => asked(path).catch(() => ({ body: undefined }))
  const api = (await optional("/openapi.json")).body?.info as Readonly<Record<string, unknown>> | undefined
  const props = (await optional("/props")).body
  const ids = idsOf(models.body)
  const title = [short(api?.title), short(api?.version)].filter((part) => part !== undefined).join(" ")
  const build = short(props?.build_info)
  return {
    ...(models.server === undefined ? {} : { server: oneLine(models.server) }),
    ...(ids === undefined ? {} : { models: ids }),
    ...(models.failure === undefined ? {} : { modelsFailure: models.failure }),
    ...(title === "" ? {} : { api: title }),
    ...(build === undefined ? {} : { build }),
    ...(typeof props?.total_slots === "number" ? { slots: props.total_slots } : {}),
    ...(models.requestLimit === undefined ? {} : { requestLimit: models.requestLimit }),
  }
}
