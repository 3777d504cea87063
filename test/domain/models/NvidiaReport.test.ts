// Recorded and documented outputs of `nvidia-smi`: complete, partial and invalid.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { gpuColumns, parseGpus, parseProcesses } from "#domain/models/NvidiaReport.ts"

const mebibyte = 1024 * 1024
const uuid = "GPU-5a1b9c1e-7d8f-4d0e-9f12-0123456789ab"
const row = `0, ${uuid}, 143771, 1024, 142747, 37, 12, 41, Disabled, NVIDIA H200`

const rowsOf = <A>(parsed: { readonly rows: ReadonlyArray<A> } | { readonly problem: string }) => {
  if ("problem" in parsed) throw new Error(parsed.problem)
  return parsed.rows
}

describe("GPUs", () => {
  it("reads every column", () => {
    expect(rowsOf(parseGpus(`${row}\n`))).toEqual([
      {
        index: 0,
        uuid,
        name: "NVIDIA H200",
        totalBytes: 143_771 * mebibyte,
        usedBytes: 1_024 * mebibyte,
        freeBytes: 142_747 * mebibyte,
        gpuPercent: 37,
        memoryPercent: 12,
        temperatureC: 41,
        mig: false,
      },
    ])
  })

  it("reads several, and a name with a comma", () => {
    const second = row.replace(/^0/, "1").replace("NVIDIA H200", "Quadro RTX 6000, passive")
    expect(rowsOf(parseGpus(`${row}\n${second}\n`)).map(({ index, name }) => [index, name])).toEqual([
      [0, "NVIDIA H200"],
      [1, "Quadro RTX 6000, passive"],
    ])
  })

  it("leaves out what a GPU in MIG instances does not report", () => {
    const mig = `0, ${uuid}, 81559, 87, 81471, [N/A], [N/A], 35, Enabled, NVIDIA A100-SXM4-80GB`
    expect(rowsOf(parseGpus(mig))[0]).toMatchObject({
      mig: true,
      gpuPercent: undefined,
      memoryPercent: undefined,
    })
  })

  it("takes every way of the driver to say nothing", () => {
    for (const silence of ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]"]) {
      const quiet = `0, ${uuid}, 143771, 1024, 142747, ${silence}, ${silence}, ${silence}, ${silence}, GeForce GT 1030`
      expect(rowsOf(parseGpus(quiet))[0]).toMatchObject({
        gpuPercent: undefined,
        memoryPercent: undefined,
        temperatureC: undefined,
        mig: false,
      })
    }
  })

  it("has no GPUs where the driver has none", () => {
    expect(parseGpus("No devices were found\n")).toEqual({ rows: [] })
    expect(parseGpus("")).toEqual({ rows: [] })
  })

  it.each([
    ["a GPU without memory", `0, ${uuid}, [N/A], [N/A], [N/A], 0, 0, 41, [N/A], NVIDIA GB10`],
    ["a lost GPU", `0, ${uuid}, [GPU is lost], [GPU is lost], [GPU is lost], 0, 0, 4, [N/A], NVIDIA H200`],
    ["a missing column", row.replace(", 12", "")],
    ["units", row.replace("143771", "143771 MiB")],
    ["a header", gpuColumns.join(", ")],
    ["a negative number", row.replace("41", "-1")],
    ["a float", row.replace("41", "41.5")],
    ["more used than there is", row.replace("1024", "999999")],
    ["more than all of it", row.replace(", 37,", ", 101,")],
    ["no uuid", row.replace(uuid, "")],
    ["no name", row.replace("NVIDIA H200", "")],
    ["an index that is not reported", row.replace(/^0/, "[N/A]")],
    [
      "a driver that failed",
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest " +
        "NVIDIA driver is installed and running.",
    ],
    ["a mismatch", "Failed to initialize NVML: Driver/library version mismatch"],
    [
      "a device that fell off the bus",
      "Unable to determine the device handle for GPU 0000:65:00.0: Unknown Error",
    ],
  ])("refuses the whole answer with %s", (_, text) => {
    expect(parseGpus(`${row}\n${text}\n`)).toHaveProperty("problem")
  })
})

describe("processes", () => {
  it("reads them, those of containers and MIG included", () => {
    const text = `${uuid}, 4242, 1536, /opt/node, with a comma/node\n${uuid}, 7, [N/A], [Not Found]\n`
    expect(rowsOf(parseProcesses(text))).toEqual([
      { gpuUuid: uuid, pid: 4242, usedBytes: 1_536 * mebibyte, name: "/opt/node, with a comma/node" },
      { gpuUuid: uuid, pid: 7, usedBytes: undefined, name: "[Not Found]" },
    ])
    expect(rowsOf(parseProcesses(""))).toEqual([])
  })

  it("refuses what is none", () => {
    expect(parseProcesses(`${uuid}, x, 1, node`)).toHaveProperty("problem")
    expect(parseProcesses("Failed to initialize NVML: Unknown Error")).toHaveProperty("problem")
  })
})

it("never throws and never makes a number up, whatever it is given", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      for (const parsed of [parseGpus(text), parseProcesses(text)]) {
        expect("rows" in parsed || typeof parsed.problem === "string").toBe(true)
      }
    }),
  )
  const field = fc.oneof(fc.nat(200_000).map(String), fc.constantFrom("[N/A]", "x", "", "1e3", "-1", "0x10"))
  fc.assert(
    fc.property(fc.array(field, { minLength: 8, maxLength: 9 }), (fields) => {
      const parsed = parseGpus([...fields, "a name"].join(", "))
      if ("rows" in parsed)
        for (const gpu of parsed.rows) expect(gpu.usedBytes).toBeLessThanOrEqual(gpu.totalBytes)
    }),
  )
})
