// What a start prints about its first credential: the development key and its credits, or why
// there is none and how to make a key.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { edgewise, startProcess } from "../../support/nodes/NodeProcess.ts"
import { eventually, temporaryDir } from "../../support/nodes/TestNode.ts"

const dir = temporaryDir()
afterAll(dir.remove)

/** The lines of a start from the first about the development key to the curl line, and that line. */
const startLines = async (env: Readonly<Record<string, string>>) => {
  const node = await startProcess({ env: { EDGEWISE_ROLES: "edge", ...env } })
  // Its start has loaded the model before it was ready.
  await eventually(() => node.stderr().includes("model ready"), "the log has arrived")
  await node.dispose()
  const lines = node.stdout().trimEnd().split("\n")
  const at = lines.findIndex((line) => line.startsWith("ready: "))
  // Lines about the transport, the decoder and the confinement of processes come before; they differ between machines.
  const from = lines.findIndex((line) => /\bdevelopment (API )?key\b/.test(line))
  return {
    said: lines.slice(from === -1 ? at : from, at),
    ready: lines[at]!,
    curl: lines[at + 1]!,
    /** Lines behind the request: none. */
    after: lines.slice(at + 2),
    stdout: node.stdout(),
  }
}

describe("a start", () => {
  it("prints the key with its credits, and with the next start's setting why it is not accepted", async () => {
    const dataDir = join(dir.path, "data")
    const env = { EDGEWISE_DATA_DIR: dataDir }
    const first = await startLines(env)
    expect(first.said).toEqual([
      expect.stringMatching(/^development API key: svc_[0-9A-Za-z]+$/),
      "it is accepted from this machine only; its organization dev has 100.00 USD of credits" +
        " (edgewise orgs credit dev 10 adds 10 USD)",
    ])
    const key = first.said[0]!.split(" ").at(-1)!
    expect(first.curl).toContain(`'Authorization: Bearer ${key}'`)
    expect(first.ready).toMatch(
      new RegExp(`^ready: playground http://127.0.0.1:\\d+/#key=${key}, key ${key}, `),
    )
    expect(first.after).toEqual([])

    const credited = await edgewise(["orgs", "credit", "dev", "10"], env)
    expect([credited.status, credited.stdout]).toEqual([0, "dev: 110.00 USD of credits\n"])

    const make = `make a key, and set it as KEY: EDGEWISE_DATA_DIR=${dataDir} edgewise keys create --org acme`
    const refusals: ReadonlyArray<readonly [Readonly<Record<string, string>>, string]> = [
      [
        { EDGEWISE_HOST: "0.0.0.0" },
        "other machines can reach 0.0.0.0 (EDGEWISE_DEV_KEY=anywhere accepts a key nevertheless)",
      ],
      [{ EDGEWISE_DEV_KEY: "off" }, "EDGEWISE_DEV_KEY=off"],
    ]
    for (const [setting, reason] of refusals) {
      const refused = await startLines({ ...env, ...setting })
      expect(refused.said).toEqual([`the development key is not accepted: ${reason}`, make])
      expect(refused.curl).toContain('"Authorization: Bearer $KEY"')
      expect(refused.stdout).not.toContain(key)
    }
    const anywhere = await startLines({ ...env, EDGEWISE_HOST: "0.0.0.0", EDGEWISE_DEV_KEY: "anywhere" })
    expect(anywhere.said).toEqual([
      `development API key: ${key}`,
      "it is accepted from every address; its organization dev has 110.00 USD of credits" +
        " (edgewise orgs credit dev 10 adds 10 USD)",
    ])
  })

  it("beyond loopback makes no key, and says how to make one", async () => {
    const dataDir = join(dir.path, "beyond")
    const { said, stdout } = await startLines({
      EDGEWISE_HOST: "0.0.0.0",
      EDGEWISE_TRANSPORT: "auto",
      EDGEWISE_DATA_DIR: dataDir,
    })
    expect(stdout).toMatch(
      /^edge listening on \S+ with Node's own server and ws: other machines reach 0\.0\.0\.0$/m,
    )
    expect(said[0]).toMatch(/^no development API key: other machines can reach 0\.0\.0\.0 /)
    expect(said[1]).toMatch(/edgewise keys create --org acme$/)
    expect(stdout).not.toContain("svc_")
    expect(existsSync(join(dataDir, "dev-key"))).toBe(false)
  })

  it("names the setting and what is allowed where it is wrong", async () => {
    const wrong = await edgewise(["serve"], { EDGEWISE_DEV_KEY: "everywhere" })
    expect(wrong.status).not.toBe(0)
    expect([wrong.stdout, wrong.stderr]).toEqual([
      "",
      'EDGEWISE_DEV_KEY: "everywhere" is not allowed; allowed is one of loopback, anywhere, off\n',
    ])
  })
})
