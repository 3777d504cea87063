// Verdicts on readings of the surroundings, and the parsers of what Linux shows.
import { Result } from "effect"
import { expect, it } from "vitest"
import { cacheBytesFrom, disturbance } from "#cli/doctor/machine/MachineFacts.ts"
import * as Verdicts from "#cli/doctor/machine/SurroundingVerdicts.ts"
import { librariesFrom } from "#cli/doctor/measure/EngineProcessFacts.ts"
import { trustNone } from "#domain/access/ClientAddress.ts"
import { machine } from "../Reports.ts"

const gibibyte = 1024 ** 3

it("judges readings, and says what to do about each that is not ok", () => {
  const judged = [
    [Verdicts.nodeVerdict("v22.23.3"), "ok"],
    [Verdicts.nodeVerdict("v25.0.0"), "warning"],
    [Verdicts.moduleVerdict("onnxruntime-node", "1", undefined), "ok"],
    [Verdicts.moduleVerdict("onnxruntime-node", "", "no such file"), "failure"],
    [Verdicts.decoderVerdict(Result.succeed({ line: "audio files are decoded by node-av" })), "ok"],
    [Verdicts.decoderVerdict(Result.fail({ detail: "no ffmpeg program was found" })), "failure"],
    [Verdicts.confinementVerdict("decoders and engines are confined by landlock-7", true), "ok"],
    [Verdicts.confinementVerdict("… confined by rlimits; not in force: seccomp", true), "warning"],
    [Verdicts.confinementVerdict("…", false), "warning"],
    [Verdicts.memoryVerdict(4 * gibibyte, gibibyte), "ok"],
    [Verdicts.memoryVerdict(gibibyte, gibibyte), "warning"],
    [Verdicts.diskVerdict(20 * gibibyte, undefined), "ok"],
    [Verdicts.diskVerdict(gibibyte / 2, undefined), "warning"],
    [Verdicts.diskVerdict(20 * gibibyte, "not a directory"), "failure"],
    [Verdicts.openFilesVerdict(20_000, 8_192), "ok"],
    [Verdicts.openFilesVerdict(undefined, 8_192), "ok"],
    [Verdicts.openFilesVerdict(1_024, 8_192), "warning"],
    [Verdicts.coresVerdict(machine), "ok"],
    [Verdicts.coresVerdict({ ...machine, quota_cores: 0.5 }), "warning"],
    [Verdicts.coresVerdict({ ...machine, processors: 8 }), "warning"],
    [Verdicts.timersVerdict(1.1), "ok"],
    [Verdicts.timersVerdict(16), "warning"],
    [Verdicts.loopbackVerdict(0.05), "ok"],
    [Verdicts.loopbackVerdict(40), "warning"],
    [Verdicts.loopbackVerdict(undefined), "failure"],
    [Verdicts.clockVerdict(undefined), "ok"],
    [Verdicts.clockVerdict("the system clock is wrong"), "failure"],
    [Verdicts.quietVerdict(machine, undefined), "ok"],
    [Verdicts.quietVerdict(machine, "127.0.0.1:8080"), "warning"],
    [Verdicts.quietVerdict({ ...machine, busy_percent: 60 }, undefined), "warning"],
  ] as const
  expect(judged.map(([{ verdict }]) => verdict)).toEqual(judged.map(([, wanted]) => wanted))
  for (const [{ advice, detail, verdict }] of judged) {
    expect(advice === null).toBe(verdict === "ok")
    expect(detail).not.toContain("undefined")
  }
})

it("says which library the listeners have, and warns where it is another one than would be", () => {
  const facts = { host: "127.0.0.1", tls: undefined, isTrusted: trustNone } as const
  const loads = Verdicts.ok("uWebSockets.js", "20.0.8")
  const lacks = Verdicts.failure("uWebSockets.js", "no binary", "install it")
  const verdicts = [
    [loads, "auto", "127.0.0.1"],
    [loads, "auto", "0.0.0.0"],
    [lacks, "auto", "0.0.0.0"],
    [lacks, "auto", "127.0.0.1"],
    [lacks, "uws", "127.0.0.1"],
    [lacks, "node", "127.0.0.1"],
  ] as const
  const judged = verdicts.map(([uws, transport, host]) => {
    const { advice, detail, verdict } = Verdicts.transportVerdict({ ...facts, transport, host }, uws)
    return [verdict, detail, advice]
  })
  const advice = expect.stringContaining("docs/transports.md")
  expect(judged).toEqual([
    ["ok", "20.0.8; listeners have uWebSockets.js: only this machine reaches 127.0.0.1", null],
    ["ok", "20.0.8; listeners have Node's own server and ws: other machines reach 0.0.0.0", null],
    ["ok", "no binary; listeners have Node's own server and ws: other machines reach 0.0.0.0", null],
    ["warning", "no binary; Node's own server serves instead", advice],
    ["failure", "no binary", "set EDGEWISE_TRANSPORT=auto: Node's own server serves instead"],
    ["ok", "no binary; listeners have Node's own server and ws: EDGEWISE_TRANSPORT=node", null],
  ])
})

it("goes by the share of processors in use, and by the load where that is unknown", () => {
  expect(disturbance({ busy_percent: 2, load_1m: 4, hardware_threads: 2 })).toBeUndefined()
  expect(disturbance({ busy_percent: 40, load_1m: 0, hardware_threads: 2 })).toContain("40 %")
  expect(disturbance({ busy_percent: null, load_1m: 4, hardware_threads: 2 })).toContain("load 4")
})

it("reads cache sizes", () => {
  expect([cacheBytesFrom("32768K"), cacheBytesFrom("1M"), cacheBytesFrom("")]).toEqual([
    2 ** 25,
    2 ** 20,
    null,
  ])
})

it("finds the native libraries of an engine in its mapped files", () => {
  const line = (path: string) => `7f00-7f01 r-xp 00000000 fe:00 1 ${path}\n`
  const llama = line("/x/llama-addon.node") + line("/x/libggml-cpu-icelake.so") + line("/x/libggml-base.so")
  expect(librariesFrom(llama)).toEqual([
    { name: "llama.cpp", version: expect.any(String), variant: "icelake", provider: "cpu" },
  ])
  expect(librariesFrom(llama + line("/x/libggml-cuda.so"))[0]?.provider).toBe("cuda")
  const onnx = line("/x/libonnxruntime.so.1.30.0") + line("/x/onnxruntime_binding.node")
  expect(librariesFrom(onnx)).toEqual([
    { name: "ONNX Runtime", version: "1.30.0", variant: null, provider: "cpu" },
  ])
  expect(librariesFrom(line("/lib/libc.so.6"))).toEqual([])
})
