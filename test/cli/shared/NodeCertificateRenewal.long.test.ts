// A node as a process whose certificate is replaced under load, by SIGHUP and by the files alone: new connections get
// the new one, and no open or new connection fails meanwhile. And how a node makes its own certificate.
import { X509Certificate } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import tls from "node:tls"
import { afterAll, expect, it } from "vitest"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { TextStream, textOf } from "../../support/clients/TextStream.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { type NodeProcess, processLoaded, startProcess } from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"
import {
  filesIn,
  makeAuthority,
  makePair,
  trustHere,
  writePair,
} from "../../support/servers/TestCertificates.ts"

const authority = await makeAuthority()
trustHere(authority.certificate.toString("pem"))
const dir = temporaryDir()
afterAll(() => dir.remove())

const fingerprintOf = (pem: string): string => new X509Certificate(pem).fingerprint256

/** The certificate that a new connection is shown. */
const shown = (node: NodeProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = tls.connect({ port: node.port, host: "127.0.0.1" }, () => {
      const { fingerprint256 } = socket.getPeerCertificate()
      socket.end()
      resolve(fingerprint256)
    })
    socket.once("error", reject)
  })

const steps = { tokens: 10, tokenMs: 100, text: "w" }

/** Answers over connections that fetch keeps, one after the other until `isOver`; each must be whole. */
const chat = async (node: NodeProcess, begun: () => void, isOver: () => boolean): Promise<void> => {
  do {
    const response = await fetch(`${node.base}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "fake",
        stream: true,
        max_tokens: 4096,
        messages: [{ role: "user", content: script(steps) }],
      }),
    })
    const stream = new TextStream(response)
    await stream.take(1)
    begun()
    expect(await stream.toEnd()).toBe("complete")
    expect(textOf(stream.events)).toBe("w".repeat(steps.tokens))
    expect(stream.events.at(-1)).toBe("[DONE]")
  } while (!isOver())
}

/** The same over one WebSocket. */
const talk = async (node: NodeProcess, begun: () => void, isOver: () => boolean): Promise<void> => {
  const client = await SocketClient.open(
    `${node.base.replace("https", "wss")}/v1/completions/ws?token=${node.devKey}`,
  )
  let nth = 0
  do {
    const before = client.frames.length
    client.send({ request_id: `${nth}`, model: "fake", max_tokens: 4096, prompt: script(steps) })
    await client.until((frames) => frames.length > before)
    begun()
    expect(await client.end(`${nth}`)).toMatchObject({
      type: "done",
      usage: { completion_tokens: steps.tokens },
    })
    nth++
  } while (!isOver())
  client.socket.close()
}

const streams = 50
it(`renews under ${streams} open streams, on SIGHUP and when the files change, and loses none`, async () => {
  const files = filesIn(join(dir.path, "renewal"))
  const newPair = () => makePair({ issuer: authority })
  const first = await newPair()
  writePair(files, first)
  const node = await startProcess({
    models: [{ ...fakeModel, options: { slots: 64 } }],
    env: { EDGEWISE_TLS_CERT: files.cert, EDGEWISE_TLS_KEY: files.key },
  })
  let ended = false
  try {
    await processLoaded(node, "fake")
    const begun = new Set<number>()
    const clients = Promise.all(
      Array.from({ length: streams }, (_, nth) =>
        (nth % 2 === 0 ? chat : talk)(
          node,
          () => begun.add(nth),
          () => ended,
        ),
      ),
    )
    // Awaited below.
    clients.catch(() => {})
    await eventually(() => begun.size === streams, "all streams have begun")
    let connected = 0
    const connecting = Array.from({ length: 4 }, async () => {
      while (!ended) {
        await shown(node)
        connected++
        await sleep(20)
      }
    })
    expect(await shown(node)).toBe(fingerprintOf(first.cert))

    const second = await newPair()
    writePair(files, second)
    node.signal("SIGHUP")
    await eventually(async () => (await shown(node)) === fingerprintOf(second.cert), "SIGHUP loads it")

    // The certificate is replaced before its key: at most one warning, then both are right.
    const third = await newPair()
    writePair(files, { cert: third.cert, key: second.key })
    node.signal("SIGHUP")
    await eventually(
      () => node.stderr().includes("the current certificate stays in use"),
      "the mismatch is logged",
    )
    expect(await shown(node)).toBe(fingerprintOf(second.cert))
    writePair(files, third)
    await eventually(
      async () => (await shown(node)) === fingerprintOf(third.cert),
      "the change of the files is seen",
    )

    ended = true
    await clients
    await Promise.all(connecting)
    expect(connected).toBeGreaterThan(10)
    const lines = node.stderr().split("\n")
    expect(lines.filter((line) => line.includes("certificate renewed"))).toHaveLength(2)
    const refusals = lines.filter((line) => line.includes("the current certificate stays in use"))
    // One was waited for; the two other pairs may each have been read between their files, on a machine that stood still.
    expect(refusals.length).toBeLessThanOrEqual(3)
    node.signal("SIGTERM")
    expect(await node.exited).toEqual([0, null])
  } finally {
    ended = true
    await node.dispose()
  }
})

it("makes a certificate for itself, keeps it, and says how to trust it", async () => {
  const node = await startProcess({ env: { EDGEWISE_TLS: "self-signed", EDGEWISE_TRANSPORT: "auto" } })
  try {
    const path = join(node.dataDir, "tls", "self-signed-cert.pem")
    const pem = readFileSync(path, "latin1")
    const certificate = new X509Certificate(pem)
    const modes = ["self-signed-cert.pem", "self-signed-key.pem"].map(
      (name) => statSync(join(node.dataDir, "tls", name)).mode & 0o777,
    )
    expect(modes).toEqual([0o600, 0o600])
    for (const host of ["127.0.0.1", "::1"]) expect(certificate.checkIP(host)).toBe(host)
    expect(certificate.checkHost("localhost")).toBe("localhost")
    const days = (new Date(certificate.validTo).getTime() - Date.now()) / (24 * 3_600_000)
    expect(Math.round(days)).toBe(365)
    const bases = [...node.stdout().matchAll(/^\w+ listening on (\S+) with /gm)].map(([, base]) => base!)
    expect(node.stdout().match(/ with Node's own server and ws: this listener does TLS$/gm)).toHaveLength(3)
    expect(bases.map((base) => new URL(base).protocol)).toEqual(["https:", "https:", "https:"])
    expect(node.stdout()).toContain(`SHA-256 ${certificate.fingerprint256}`)
    expect(node.stdout()).toContain(`curl --cacert ${path} ${node.base}/v1/chat/completions`)
    trustHere(pem)
    const [, , router] = bases
    const route = (await (await fetch(`${router}/v1/route`)).json()) as { readonly endpoint: string }
    expect(route.endpoint).toBe(node.base)
    // An operator's reload makes no new one.
    node.signal("SIGHUP")
    await eventually(() => node.stderr().includes("reloading on SIGHUP"), "it reloads")
    expect(await shown(node)).toBe(certificate.fingerprint256)
  } finally {
    await node.dispose()
  }
})
