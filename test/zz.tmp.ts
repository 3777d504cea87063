import { readFileSync } from "node:fs"
import { startNode } from "./support/TestNode.ts"
import { whisper, model, post } from "./support/TranscriptionClient.ts"
import { longWav } from "./support/SpeechClips.ts"
import { childrenRunning } from "./support/ChildProcesses.ts"
const node = await startNode({ models: [whisper] })
const cpu = (pid: number) => { const f = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" "); return [Number(f[11]) * 10, Number(f[12]) * 10, Number(f[7])] }
const file = longWav(60) as Uint8Array<ArrayBuffer>
for (let i = 0; i < 8; i++) {
  const p = childrenRunning("engineMain")[0], d = childrenRunning("decoderMain")[0]
  const a = p ? cpu(p) : [0,0,0], da = d ? cpu(d) : [0,0,0], me = process.cpuUsage()
  const t = performance.now()
  const r = await post(node, file, { query: { model, sync: "true" } }); await r.text()
  const w = performance.now() - t
  const b = cpu(childrenRunning("engineMain")[0]!), db = d ? cpu(d) : [0,0,0], m2 = process.cpuUsage(me)
  console.log("wall", w.toFixed(0), "engine user/sys/faults", b[0]! - a[0]!, b[1]! - a[1]!, b[2]! - a[2]!, "decoder", db[0]! - da[0]!, db[1]! - da[1]!, "gateway", (m2.user + m2.system) / 1000 | 0)
}
await node.stop(); process.exit(0)
