// Wrong TLS settings: one line each, which names the setting, the file and the mistake,
// and exit status 2. And the command line against a node that serves TLS.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { nodeCertificate } from "#cli/shared/NodeCertificate.ts"
import { load } from "#config/Config.ts"
import type { SettingName } from "#config/Settings.ts"
import { edgewise, startProcess } from "../../support/nodes/NodeProcess.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"
import { filesIn, makeAuthority, makePair, writePair } from "../../support/servers/TestCertificates.ts"

const dir = temporaryDir()
afterAll(() => dir.remove())
const authority = await makeAuthority()
const good = filesIn(join(dir.path, "good"))
const other = filesIn(join(dir.path, "other"))
const expired = filesIn(join(dir.path, "expired"))
writePair(good, await makePair({ issuer: authority, names: ["edge.example.com"] }))
writePair(other, await makePair())
writePair(expired, await makePair({ fromDays: -90, untilDays: -2 }))
const path = (name: string): string => join(dir.path, name)
writeFileSync(path("large.pem"), Buffer.alloc(1_000_001, "a"))
mkdirSync(path("folder"))
const inTheWay = path("in-the-way")
writeFileSync(inTheWay, "")

type Given = Partial<Record<SettingName, string>>

const mistakes: ReadonlyArray<readonly [name: string, given: Given, line: string]> = [
  [
    "a key without a certificate",
    { tlsKey: good.key },
    "EDGEWISE_TLS_CERT: is not set, but EDGEWISE_TLS_KEY is",
  ],
  [
    "a certificate without a key",
    { tlsCert: good.cert },
    "EDGEWISE_TLS_KEY: is not set, but EDGEWISE_TLS_CERT is",
  ],
  [
    "self-signed and a certificate",
    { tls: "self-signed", tlsCert: good.cert, tlsKey: good.key },
    "EDGEWISE_TLS: self-signed makes its own certificate; unset EDGEWISE_TLS_CERT and EDGEWISE_TLS_KEY",
  ],
  [
    "a certificate that is not there",
    { tlsCert: path("none.pem"), tlsKey: good.key },
    `EDGEWISE_TLS_CERT: ${path("none.pem")}: no such file`,
  ],
  [
    "a key that is not there",
    { tlsCert: good.cert, tlsKey: path("none.pem") },
    `EDGEWISE_TLS_KEY: ${path("none.pem")}: no such file`,
  ],
  [
    "a directory",
    { tlsCert: path("folder"), tlsKey: good.key },
    `EDGEWISE_TLS_CERT: ${path("folder")}: is a directory`,
  ],
  ["a device", { tlsCert: "/dev/null", tlsKey: good.key }, "EDGEWISE_TLS_CERT: /dev/null: is not a file"],
  [
    "a file that is no certificate",
    { tlsCert: path("large.pem"), tlsKey: good.key },
    `EDGEWISE_TLS_CERT: ${path("large.pem")}: is larger than 1000000 bytes, so it is no PEM file`,
  ],
  [
    "the two exchanged",
    { tlsCert: good.key, tlsKey: good.cert },
    `EDGEWISE_TLS_CERT: ${good.key}: holds a private key and no certificate; are the two files exchanged?`,
  ],
  [
    "another certificate's key",
    { tlsCert: good.cert, tlsKey: other.key },
    `EDGEWISE_TLS_KEY: ${other.key}: the private key is not the one of the certificate`,
  ],
]

const checked = (given: Given) =>
  Effect.runPromiseExit(Effect.flatMap(load({ dataDir: path("data"), ...given }, {}), nodeCertificate))

describe("a mistake in the settings of TLS", () => {
  it.each(mistakes)("%s", async (_, given, line) => {
    const exit = await checked(given)
    const error = Exit.isFailure(exit) ? Effect.runSync(Effect.flip(exit)) : undefined
    expect(error?.message).toBe(line)
  })

  it("an expired certificate", async () => {
    const exit = await checked({ tlsCert: expired.cert, tlsKey: expired.key })
    expect(String(exit)).toContain(`EDGEWISE_TLS_CERT: ${expired.cert}: the certificate expired on 2`)
  })

  it("a data directory that cannot hold a self-signed certificate", async () => {
    const exit = await checked({ tls: "self-signed", dataDir: join(inTheWay, "data") })
    expect(String(exit)).toContain("cannot be made: ")
  })

  it("off is plain HTTP, whatever else is set", async () => {
    const exit = await checked({ tls: "off", tlsCert: good.cert, tlsKey: good.key })
    expect(exit).toEqual(Exit.succeed(undefined))
  })

  it.each(mistakes.slice(0, 1).concat(mistakes.slice(-1)))(
    "ends `serve` with status 2: %s",
    async (_, given, line) => {
      const ended = await edgewise(["serve", "--port", "0", "--auth-port", "0", "--router-port", "0"], {
        EDGEWISE_DATA_DIR: path("data"),
        ...(given.tlsCert === undefined ? {} : { EDGEWISE_TLS_CERT: given.tlsCert }),
        ...(given.tlsKey === undefined ? {} : { EDGEWISE_TLS_KEY: given.tlsKey }),
      })
      expect(ended).toEqual({ status: 2, stdout: "", stderr: `${line}\n` })
    },
  )
})

describe("the command line and a node over TLS", () => {
  it("reaches it by its own certificate, whatever name that is for, and says what is missing", async () => {
    const tls = { EDGEWISE_TLS_CERT: good.cert, EDGEWISE_TLS_KEY: good.key }
    const node = await startProcess({ env: tls })
    try {
      const list = (url: string, env: Readonly<Record<string, string>> = {}) =>
        edgewise(["models", "list", "--json", "--url", url, "--key", node.devKey], env)
      const found = await list(node.base, { EDGEWISE_DATA_DIR: node.dataDir, EDGEWISE_TLS_CERT: good.cert })
      expect([found.status, found.stderr]).toEqual([0, ""])
      // The node's answer about models that are in this catalog and not in its own.
      expect(found.stdout).toContain('"status": "not deployed"')
      const speak = (url: string) =>
        edgewise(["speak", "Hello.", "--out", path("a.wav"), "--url", url, "--key", node.devKey], {
          EDGEWISE_DATA_DIR: path("nowhere"),
        })
      const untrusted = await speak(node.base)
      expect([untrusted.status, untrusted.stdout]).toEqual([1, ""])
      expect(untrusted.stderr).toMatch(
        /^https:\S+: .*; name its certificate with EDGEWISE_TLS_CERT or NODE_EXTRA_CA_CERTS\n$/,
      )
      const plain = await speak(node.base.replace("https", "http"))
      expect([plain.status, plain.stdout]).toEqual([1, ""])
      expect(plain.stderr).toMatch(/^http:\S+: .*; if it speaks TLS, use --url https:\/\/…\n$/)
    } finally {
      await node.dispose()
    }
  })
})
