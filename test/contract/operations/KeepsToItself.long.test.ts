// A node opens no connection of its own. ONNX Runtime's published binaries report every session to their maker unless
// this is disabled; their first step is to leave files in the home directory and the temporary folder.
import { mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { startProcess } from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"

const started = (isolation: "process" | "thread") => ({ runtime: { load: "start", isolation } })

it.each(["process", "thread"] as const)("engines in a %s leave no trace of telemetry", async (isolation) => {
  const dir = temporaryDir()
  const home = join(dir.path, "home")
  const temporary = join(dir.path, "temporary")
  mkdirSync(home)
  mkdirSync(temporary)
  const node = await startProcess({
    models: [
      fakeModel,
      builtInModel("tts-82m", started(isolation)),
      builtInModel("stt-large-v3-turbo", started("process")),
    ],
    env: { HOME: home, TMPDIR: temporary },
  })
  try {
    const headers = { authorization: `Bearer ${node.devKey}` }
    const spoken = await fetch(`${node.base}/v1/audio/speech`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({
        model: "tts-82m",
        voice: "af_bella",
        input: "No other server listens.",
        response_format: "wav",
      }),
    })
    expect(spoken.status).toBe(200)
    const form = new FormData()
    form.append("file", new File([new Uint8Array(await spoken.arrayBuffer())], "speech.wav"))
    const heard = await fetch(`${node.base}/v1/audio/transcriptions?model=stt-large-v3-turbo&sync=true`, {
      method: "POST",
      headers,
      body: form,
    })
    expect(heard.status).toBe(200)
    expect(readdirSync(home, { recursive: true })).toEqual([])
    expect(readdirSync(temporary, { recursive: true })).toEqual([])
  } finally {
    await node.dispose()
    dir.remove()
  }
})
