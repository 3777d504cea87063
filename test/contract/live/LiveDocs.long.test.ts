// The client that docs/live.md shows, run unchanged with the reducer printed above it: captions and the final result of
// a clip, against the same node's answer for the file. On the machine's own Node as well.
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { clips, syncAnswer, wavOf } from "../../support/clients/LiveClient.ts"
import { model, whisper } from "../../support/clients/TranscriptionClient.ts"
import { noOtherNode, otherNode } from "../../support/docs/OtherNode.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { startNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const page = readFileSync(new URL("../../../docs/live.md", import.meta.url), "utf8")
const blockWith = (start: string): string => {
  const block = page.split("```js\n").find((text) => text.startsWith(start))
  if (block === undefined) throw new Error(`docs/live.md has no block that starts with ${start}`)
  return block.slice(0, block.indexOf("```"))
}

const showsCaptions = async (program: string) => {
  const node = await startNode({ models: [whisper] })
  const folder = mkdtempSync(join(tmpdir(), "edgewise-live-docs-"))
  try {
    await untilLoaded(node, model)
    // Longer than a busy machine takes to read a part and write its caption.
    const pcm = Buffer.concat([clips[0]!, clips[1]!])
    // The client's one package is found there.
    symlinkSync(
      fileURLToPath(new URL("../../../node_modules", import.meta.url)),
      join(folder, "node_modules"),
    )
    const script = join(folder, "live.mjs")
    const wav = join(folder, "speech.wav")
    writeFileSync(script, `${blockWith("// live.mjs")}\n${blockWith("function captionAfter")}`)
    writeFileSync(wav, wavOf(pcm))
    const env = {
      ...process.env,
      NODE_URL: `${node.socketBase}`,
      KEY: node.keys.dev,
    }
    const { stdout } = await promisify(execFile)(program, [script, wav], { env, timeout: 60_000 })
    const { text } = await syncAnswer(node, pcm, { model })
    const lines = stdout.trim().split("\n")
    expect(lines.slice(-2)).toEqual([`transcript.text.done ${text}`, "closed 1000"])
    const captions = lines.filter((line) => line.startsWith("transcript.text.delta "))
    // One of each second, of which a busy machine leaves out those that a newer one has overtaken.
    expect(captions.length).toBeGreaterThan(0)
    expect(captions.length).toBeLessThanOrEqual(pcm.length / 32_000)
  } finally {
    await node.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

it("the client of the docs shows captions and ends in the file's text", () => showsCaptions(process.execPath))

it(
  `the same with ${otherNode?.version ?? "another Node"}`,
  { ...onlyWhere(otherNode !== undefined, noOtherNode) },
  () => showsCaptions(otherNode!.path),
)
