// A local OTLP collector: keeps the received bodies and answers with chosen statuses.
import type { IncomingHttpHeaders } from "node:http"
import { startLoopbackServer } from "./LoopbackServer.ts"

interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<{
    readonly key: string
    readonly value: Readonly<Record<string, string>>
  }>
}

interface LogRecord {
  readonly traceId?: string
  readonly body: { readonly stringValue: string }
  readonly attributes: Span["attributes"]
}

interface Body {
  readonly resourceSpans?: ReadonlyArray<{
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<Span> }>
  }>
  readonly resourceLogs?: ReadonlyArray<{
    readonly scopeLogs: ReadonlyArray<{ readonly logRecords: ReadonlyArray<LogRecord> }>
  }>
}

export interface Collector {
  readonly url: string
  readonly received: Array<Received>
  /** Statuses of the next answers; later answers have 200. */
  readonly statuses: Array<number>
  readonly spans: () => ReadonlyArray<Span>
  readonly logs: () => ReadonlyArray<LogRecord>
  readonly stop: () => Promise<void>
}

export const startCollector = async (): Promise<Collector> => {
  const received: Array<Received> = []
  const statuses: Array<number> = []
  const { stop, url } = await startLoopbackServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const status = statuses.shift() ?? 200
    if (status === 200)
      received.push({
        path: request.url ?? "",
        headers: request.headers,
        text: Buffer.concat(chunks).toString(),
      })
    response.writeHead(status, { "content-type": "application/json" }).end("{}")
  })
  const bodies = () => received.map(({ text }) => JSON.parse(text) as Body)
  return {
    url,
    received,
    statuses,
    spans: () =>
      bodies().flatMap(({ resourceSpans = [] }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
      ),
    logs: () =>
      bodies().flatMap(({ resourceLogs = [] }) =>
        resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords)),
      ),
    stop,
  }
}
