// The guide for voice clients: its programs, run as the page says.
import { spawnSync } from "node:child_process"
import { once } from "node:events"
import net from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { blocksOf, type GuideBlock } from "../support/docs/GuideBlocks.ts"
import { noOtherNode, otherNode, useNode } from "../support/docs/OtherNode.ts"
import { type GuideRun, linkRepository, startGuide } from "../support/docs/RunGuide.ts"
import { needs, onlyWhere } from "../support/groups/Needs.ts"
import { uses } from "../support/groups/Uses.ts"
import { temporaryDir } from "../support/nodes/TestNode.ts"

const blocks = blocksOf("docs/voice-client.md")
const dir = temporaryDir()
let guide: GuideRun
beforeAll(async () => {
  uses("weights", "the built-in weights, in a node of its own")
  linkRepository(dir.path)
  guide = await startGuide({ folder: dir.path })
  for (const block of blocks.filter(({ file }) => file !== undefined)) await guide.run(block)
  await guide.run(shell("npm start"))
})
afterAll(async () => {
  await guide.stop()
  dir.remove()
})

const shell = (part: string): GuideBlock => {
  const block = blocks.find(({ language, text }) => language === "sh" && text.includes(part))
  if (block === undefined) throw new Error(`no block of the page has ${part}`)
  return block
}

/** 0.6 s of 16 kHz audio: the connection breaks in the middle of the sentence. */
const cutAfterBytes = 20_000

/** Passes connections on to a port, and breaks the first one after some bytes of the client. */
const startCuttingRelay = async (port: number) => {
  let opened = 0
  const server = net.createServer((near) => {
    const isFirst = opened++ === 0
    const far = net.connect(port, "127.0.0.1")
    let sent = 0
    const cut = () => {
      near.destroy()
      far.destroy()
    }
    near.on("data", (data) => {
      sent += data.length
      if (isFirst && sent > cutAfterBytes) cut()
    })
    for (const socket of [near, far]) socket.on("error", cut).on("close", cut)
    near.pipe(far).pipe(near)
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address() as net.AddressInfo
  return { port: address.port, opened: () => opened, stop: () => void server.close() }
}

const spoken = /^first sound after \d+\.\d\d s, (?:\d+\.\d\d s of speech, )?\d+ under-runs$/m
/** The last line that a listener prints. */
const heard = (output: string): string => output.trimEnd().split("\n").at(-1) ?? ""
const sentence = /^please open the window\.?$/i

const hasWebsockets = spawnSync("python3", ["-c", "import websockets"]).status === 0

describe("the guide for voice clients", () => {
  it("names every program, and runs each", () => {
    const run = blocks.filter(({ file }) => file === undefined).map(({ text }) => text)
    const programs = blocks.flatMap(({ file }) =>
      file === undefined || /jitter|player|captions/.test(file) ? [] : [file],
    )
    expect(programs.filter((name) => !run.some((text) => text.includes(` ${name} `)))).toEqual([])
    expect(programs).toHaveLength(4)
  })

  it("speaks with Node, and hears it with captions", async () => {
    expect(await guide.run(shell("node speak.mjs"))).toMatch(spoken)
    const output = await guide.run(shell("node listen.mjs"))
    expect(heard(output)).toMatch(sentence)
    // How many captions come before the final text depends on the machine; each marks its soft part.
    expect(output).toMatch(/^.*\[.*\]$/m)
  })

  it("loses no word when the connection breaks in the middle", async () => {
    const port = Number(new URL((await guide.run({ ...shell("npm start"), text: "echo $URL" })).trim()).port)
    const relay = await startCuttingRelay(port)
    const text = `URL=http://127.0.0.1:${relay.port} node listen.mjs speech.wav`
    const output = await guide.run({ ...shell("node listen.mjs"), text })
    relay.stop()
    expect(heard(output)).toMatch(sentence)
    expect(relay.opened()).toBe(2)
  })

  it("speaks with Python", needs("python3"), async () => {
    expect(await guide.run(shell("python3 speak.py"))).toMatch(spoken)
  })

  it(
    `speaks and listens with ${otherNode?.version ?? "another Node"} too`,
    onlyWhere(otherNode !== undefined, noOtherNode),
    async () => {
      await guide.run(useNode(otherNode!, dir.path))
      expect((await guide.run({ ...shell("npm start"), text: "node --version" })).trim()).toBe(
        otherNode!.version,
      )
      expect(await guide.run(shell("node speak.mjs"))).toMatch(spoken)
      expect(heard(await guide.run(shell("node listen.mjs")))).toMatch(sentence)
    },
  )

  it("listens with Python", onlyWhere(hasWebsockets, "Python's package websockets is missing"), async () => {
    expect(heard(await guide.run(shell("python3 listen.py")))).toMatch(sentence)
  })
})
