// The roles of a process as their operator sees them: what the start prints, how it stops, and the command that rotates
// the signing key beside it.
import { expect, it } from "vitest"
import { edgewise, startProcess } from "../../support/nodes/NodeProcess.ts"

it("prints one line a listener, in order and with its library, serves each, and drains all of them", async () => {
  const node = await startProcess({ env: { EDGEWISE_TRANSPORT: "auto" } })
  try {
    const lines = node.stdout().split("\n")
    const listeners = lines.flatMap(
      (line) => /^(\w+) listening on (http:\S+) with /.exec(line)?.slice(1, 3) ?? [],
    )
    expect(listeners.filter((_, i) => i % 2 === 0)).toEqual(["edge", "auth", "router"])
    const withUws = lines.filter((line) =>
      line.endsWith(" with uWebSockets.js: only this machine reaches 127.0.0.1"),
    )
    expect(withUws).toHaveLength(3)
    expect(lines).toContain(
      "edge: the API and the playground; auth: session tokens for browsers; router: the edge that is nearest to a caller; --roles edge starts the first alone",
    )
    const [, edge, , auth, , router] = listeners
    expect((await fetch(`${edge}/health`)).status).toBe(200)
    expect((await fetch(`${auth}/.well-known/jwks.json`)).status).toBe(200)
    const route = (await (await fetch(`${router}/v1/route`)).json()) as { readonly endpoint: string }
    expect(route.endpoint).toBe(edge)

    const rotated = await edgewise(["sessions", "rotate", "--json"], { EDGEWISE_DATA_DIR: node.dataDir })
    expect([rotated.status, rotated.stderr]).toEqual([0, ""])
    expect(JSON.parse(rotated.stdout)).toEqual({
      kid: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      active_at: expect.stringMatching(/^\d{4}-.*Z$/),
      ended_all: false,
    })
    node.signal("SIGTERM")
    expect(await node.exited).toEqual([0, null])
    for (const base of [edge, auth, router]) await expect(fetch(`${base}/`)).rejects.toThrow()
  } finally {
    await node.dispose()
  }
})

it("a wrong role, and a data directory that is none, are one line each", async () => {
  const wrong = await edgewise(["serve", "--roles", "edge,boss"])
  expect([wrong.status, wrong.stdout]).toEqual([2, ""])
  expect(wrong.stderr).toMatch(/^EDGEWISE_ROLES: "edge,boss" is not allowed; .*\n$/)
  const nowhere = await edgewise(["sessions", "rotate"], { EDGEWISE_DATA_DIR: "/proc/none" })
  expect([nowhere.status, nowhere.stdout]).toEqual([1, ""])
  expect(nowhere.stderr).toMatch(/^\/proc\/none\/[^\n]*: there is no such file or folder\n$/)
})
