// A client in a separate process that sends a body as fast as the kernel accepts it. This is faster than this process reads,
// so it arrives in pieces that uWS still delivers after a pause. Every 64-byte block of the body is different.
import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { tlsPorts } from "../servers/TestCertificates.ts"

const program = `
const net = require("node:net"), tls = require("node:tls"), crypto = require("node:crypto")
const [port, path, total, secure] = process.argv.slice(2)
const body = Buffer.alloc(Number(total))
for (let at = 0; at < body.length; at += 64) body.writeUInt32LE(at, at)
process.send({ hash: crypto.createHash("sha256").update(body).digest("hex") })
const address = { port: Number(port), host: "127.0.0.1", rejectUnauthorized: false }
const socket = (secure === "true" ? tls : net).connect(address, () => {
  socket.write("POST " + path + " HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: " + total + "\\r\\n\\r\\n")
  socket.write(body)
})
let answer = ""
socket.on("data", (data) => process.send({ answer: (answer += data) }))
socket.on("close", () => process.send({ closed: true }))
socket.on("error", () => {})
`

interface Flood {
  readonly child: ChildProcess
  /** SHA-256 of the body, hex; empty until it is known. */
  readonly hash: () => string
  /** The raw bytes of the answer so far. */
  readonly answer: () => string
  readonly closed: () => boolean
}

export const flood = (port: number, path: string, bodyBytes: number): Flood => {
  const folder = mkdtempSync(join(tmpdir(), "edgewise-flood-"))
  const file = join(folder, "client.cjs")
  writeFileSync(file, program)
  const child = fork(file, [String(port), path, String(bodyBytes), String(tlsPorts.has(port))], {
    execArgv: [],
  })
  let hash = ""
  let answer = ""
  let closed = false
  child.on(
    "message",
    (said: { readonly hash?: string; readonly answer?: string; readonly closed?: true }) => {
      hash = said.hash ?? hash
      answer = said.answer ?? answer
      closed ||= said.closed === true
    },
  )
  child.once("exit", () => rmSync(folder, { recursive: true, force: true }))
  return { child, hash: () => hash, answer: () => answer, closed: () => closed }
}
