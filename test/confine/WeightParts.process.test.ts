// Weights of several files, opened by ONNX Runtime inside the confinement of an engine: beside each other, and as links into
// another folder, as in the cache of a model hub.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { engineConfinement } from "#actors/engine/EngineConfinement.ts"
import { toyEncoder } from "../engines/whisper/support/toyEncoder.ts"
import { needs } from "../support/groups/Needs.ts"
import { attempt } from "../support/process/ConfinedScript.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-parts-"))
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string): string => join(folder, name)
for (const name of ["own", "plain", "blobs", "links"]) mkdirSync(at(name))

const graph = "encoder_model.onnx"
const data = `${graph}_data`
const toy = toyEncoder().encodeExternal(data)
writeFileSync(at(`plain/${graph}`), toy.model)
writeFileSync(at(`plain/${data}`), toy.data)
for (const name of [graph, data]) symlinkSync(at(`plain/${name}`), at(`links/${name}`))

const runtime = fileURLToPath(import.meta.resolve("onnxruntime-node"))

/** The outcome of opening the graph of a folder, with the right to read these files of the folder. */
const opened = (of: string, ...names: ReadonlyArray<string>): unknown =>
  attempt(
    engineConfinement({
      folder: at("own"),
      compiled: undefined,
      home: undefined,
      files: names.map((name) => at(`${of}/${name}`)),
      env: {},
    }),
    {
      opens: `const { InferenceSession } = require(${JSON.stringify(runtime)}); return (await InferenceSession.create(${JSON.stringify(at(`${of}/${graph}`))})).inputNames.length`,
    },
  ).opens

describe.each(["plain", "links"])("external data of a graph (%s)", needs("confinement"), (of) => {
  it("is read if it is granted beside the graph, and only then", () => {
    expect(opened(of, graph, data)).toBeGreaterThan(0)
    expect(opened(of, graph)).toMatch(/denied|not permitted/i)
  })
})
