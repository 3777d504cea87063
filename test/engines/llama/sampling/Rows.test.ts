// The committed binary is wabt's output for the committed text.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import wabt from "wabt"

const file = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../../../engines/llama/sampling/${name}`, import.meta.url)))

it("rows.wasm is rows.wat", async () => {
  const { parseWat } = await wabt()
  const { buffer } = parseWat("rows.wat", file("rows.wat"), { relaxed_simd: true }).toBinary({})
  expect(Buffer.from(buffer).equals(file("rows.wasm"))).toBe(true)
})
