// Requests of a bench to its nodes, by the client of the harness. Where a bench measures what it costs a server to answer
// tens of thousands of times a second, it uses Connection.ts instead, which takes less processor time.
import { Effect } from "effect"
import { exchangeText, type Target as Server } from "#harness/client/Exchange.ts"
import { RequestFailed } from "#harness/client/Failures.ts"
import { ChildFailed } from "./Child.ts"
import type { Target } from "./Connection.ts"

/** A guess: longer than any single request of a bench. */
const patienceMs = 300_000
/** Bytes: the largest reply that is read as text. */
const mostBytes = 16 * 2 ** 20

export const serverOf = ({ key, port }: Target, timeoutMs = patienceMs): Server => ({
  base: `http://127.0.0.1:${port}`,
  headers: key === "" ? {} : { authorization: `Bearer ${key}` },
  timeoutMs,
})

/** For requests that nothing ends before their reply. */
export const neverAborted = new AbortController().signal

/** A POST of a JSON body, or a GET without one. Fails with RequestFailed unless it is answered with 200. */
export const askText = (
  target: Target,
  path: string,
  body?: object,
  timeoutMs = patienceMs,
): Promise<string> => {
  const sent =
    body === undefined ? { method: "GET" as const } : { type: "application/json", body: JSON.stringify(body) }
  return exchangeText(serverOf(target, timeoutMs), { path, signal: neverAborted, ...sent }, mostBytes)
}

/** The same with a JSON reply. */
export const ask = async <A>(target: Target, path: string, body?: object): Promise<A> =>
  JSON.parse(await askText(target, path, body)) as A

/** Its failure is that of the node. */
export const asked = <A>(request: () => Promise<A>): Effect.Effect<A, ChildFailed> =>
  Effect.tryPromise({
    try: request,
    catch: (cause) => {
      const detail = cause instanceof RequestFailed ? `${cause.key}: ${cause.message}` : String(cause)
      return new ChildFailed({ child: "edgewise serve", detail })
    },
  })
