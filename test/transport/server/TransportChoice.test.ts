// Which HTTP library a listener has, by address, TLS, trusted proxies and setting, and the words for it.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { parseProxies, trustNone } from "#domain/access/ClientAddress.ts"
import {
  chosenTransport,
  preferredTransport,
  type TransportChoice,
  transportLine,
} from "#transport/server/TransportChoice.ts"

const files = { cert: "cert.pem", key: "key.pem" }

const facts = (transport: TransportChoice, host: string, proxies = "", tls = false) => ({
  transport,
  host,
  isTrusted: (proxies === "" ? undefined : parseProxies(proxies)) ?? trustNone,
  tls: tls ? files : undefined,
})

const loopback = (host: string) => `uWebSockets.js: only this machine reaches ${host}`
const wide = (host: string) => `Node's own server and ws: other machines reach ${host}`
const ownTls = "Node's own server and ws: this listener does TLS"
const named = "uWebSockets.js: only EDGEWISE_TRUSTED_PROXIES and loopback addresses may connect"
const anyAddress = "Node's own server and ws: EDGEWISE_TRUSTED_PROXIES names every address"
const uws = "uWebSockets.js: EDGEWISE_TRANSPORT=uws"
const node = "Node's own server and ws: EDGEWISE_TRANSPORT=node"

describe("with both libraries", () => {
  it.each([
    ["auto", "127.0.0.1", "", false, loopback("127.0.0.1")],
    ["auto", "127.8.0.1", "", false, loopback("127.8.0.1")],
    ["auto", "::1", "", false, loopback("::1")],
    ["auto", "127.0.0.1", "10.0.0.7", false, loopback("127.0.0.1")],
    ["auto", "127.0.0.1", "", true, ownTls],
    ["auto", "0.0.0.0", "", false, wide("0.0.0.0")],
    ["auto", "::", "", false, wide("::")],
    ["auto", "10.0.0.5", "", false, wide("10.0.0.5")],
    ["auto", "0.0.0.0", "", true, ownTls],
    ["auto", "0.0.0.0", "10.0.0.7", false, named],
    ["auto", "10.0.0.5", "10.0.0.0/8,fd00::/8", false, named],
    ["auto", "0.0.0.0", "127.0.0.1", false, named],
    ["auto", "0.0.0.0", "10.0.0.7", true, ownTls],
    ["auto", "0.0.0.0", "0.0.0.0/0", false, anyAddress],
    ["auto", "::", "10.0.0.7,::/0", false, anyAddress],
    ["auto", "::", "0.0.0.0/1,128.0.0.0/1", false, anyAddress],
    ["uws", "127.0.0.1", "", false, uws],
    ["uws", "0.0.0.0", "", true, uws],
    ["uws", "0.0.0.0", "10.0.0.7", false, uws],
    ["node", "127.0.0.1", "", false, node],
    ["node", "0.0.0.0", "10.0.0.7", false, node],
  ] as const)('%s on %s, proxies "%s", TLS %s: %s', (setting, host, proxies, tls, line) => {
    const transport = preferredTransport(facts(setting, host, proxies, tls))
    expect(transportLine(transport)).toBe(line)
    // A forced library changes nothing about who may connect.
    expect(transport.proxiesOnly).toBe(line === named)
  })
})

describe("without a checked binary of uWebSockets.js", () => {
  const problem = "uWebSockets.js has no checked binary for linux_x64_137"
  const chosen = (setting: TransportChoice, host: string, proxies = "") =>
    Effect.runSync(
      Effect.match(chosenTransport(facts(setting, host, proxies), Effect.succeed(problem)), {
        onFailure: ({ cause }) => (cause as Error).message,
        onSuccess: transportLine,
      }),
    )

  it("Node's own server serves instead, and admits every address", () => {
    expect(chosen("auto", "127.0.0.1")).toBe(`Node's own server and ws: ${problem}`)
    expect(chosen("auto", "0.0.0.0", "10.0.0.7")).toBe(`Node's own server and ws: ${problem}`)
    const instead = chosenTransport(facts("auto", "0.0.0.0", "10.0.0.7"), Effect.succeed(problem))
    expect(Effect.runSync(instead).proxiesOnly).toBe(false)
  })

  it("is one line if the setting names it", () => {
    expect(chosen("uws", "127.0.0.1")).toBe(
      `EDGEWISE_TRANSPORT is uws, but ${problem}; set it to node or auto`,
    )
  })
})

it("does not load the native code where Node's own server was chosen for another reason", () => {
  const loading = Effect.die(new Error("loaded"))
  for (const one of [facts("node", "127.0.0.1"), facts("auto", "0.0.0.0"), facts("auto", "::1", "", true)])
    expect(Effect.runSync(chosenTransport(one, loading)).name).toBe("node")
})
