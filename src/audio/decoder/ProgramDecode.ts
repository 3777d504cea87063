// Decodes an untrusted file with the machine's `ffmpeg` program, to the samples that BindingDecode gives and with the same
// refusals. One run decodes the first audio track to mono floats; beside them it writes the track's description in FFmpeg's
// `framecrc` format, which is checked before the first sample is taken. A second run, of the description alone, finds the
// reason if the first one fails early.
import type { Container } from "./Container.ts"
import { containerAt, type DecodeFile, inputOptions, maxRssBytes, sliceMs } from "./DecodeInput.ts"
import { ProgramRun, type RunEnd } from "./ProgramRun.ts"
import {
  checkLayout,
  damaged,
  empty,
  noAudioTrack,
  type Rejected,
  tooMuchMemory,
  tooMuchTime,
  unmixable,
  unsupportedCodec,
} from "./Rejected.ts"
import { SampleChunks } from "./SampleChunks.ts"

/** The program, and which of `DECODERS` it has. */
export interface ProgramUse {
  readonly path: string
  readonly decoders: ReadonlyArray<string>
}

/** Facts about the track that is decoded. */
export interface SourceFacts {
  readonly codec: string
  readonly sourceRateHz: number
  /** 0 if FFmpeg names a layout that it cannot count. */
  readonly channels: number
}

/** FFmpeg's names of layouts by their channels; others say the number, or begin with it: `9 channels`, `7.1(wide)`. */
const namedLayouts: Readonly<Record<string, number>> = {
  mono: 1,
  stereo: 2,
  downmix: 2,
  binaural: 2,
  quad: 4,
  "quad(side)": 4,
  hexagonal: 6,
  octagonal: 8,
  cube: 8,
  hexadecagonal: 16,
}

/** Pure. */
export const channelsOf = (layout: string): number => {
  const named = namedLayouts[layout]
  if (named !== undefined) return named
  const counted = /^(\d+) channels/.exec(layout)
  if (counted !== null) return Number(counted[1])
  // Full-range channels, low-frequency channels, and in newer versions those above: 5.1, 5.1.2, 22.2.
  const parts = /^(\d+)\.(\d+)(?:\.(\d+))?(?:\(|$)/.exec(layout)
  return parts === null ? 0 : parts.slice(1).reduce((sum, count) => sum + Number(count ?? 0), 0)
}

const isComplete = (facts: string): boolean => /^#channel_layout_name 0: .*\n/m.test(facts)

/** Undefined if the description is not there. Pure. */
export const factsOf = (text: string): SourceFacts | undefined => {
  const field = (name: string) => new RegExp(`^#${name} 0: (.*)$`, "m").exec(text)?.[1]
  const [codec, rate, layout] = [field("codec_id"), field("sample_rate"), field("channel_layout_name")]
  if (codec === undefined || rate === undefined || layout === undefined) return undefined
  return { codec, sourceRateHz: Number(rate), channels: channelsOf(layout) }
}

const description = ["-map", "0:a:0", "-c", "copy", "-frames:a", "1", "-flush_packets", "1", "-f", "framecrc"]

interface Source {
  readonly path: string
  readonly container: Container
  readonly maxCpuMs: number
}

const source = ({ decoders }: ProgramUse, { container, maxCpuMs, path }: Source): Array<string> => [
  ..."-nostdin -hide_banner -loglevel repeat+error -max_error_rate 1 -filter_threads 1".split(" "),
  // Also holds where the system does not show how much time was used.
  ...["-timelimit", String(Math.ceil(maxCpuMs / 1000) + 1)],
  ..."-threads 1 -vn -sn -dn".split(" "),
  ...Object.entries(inputOptions(new Set(decoders))).flatMap(([name, value]) => [`-${name}`, String(value)]),
  ...["-f", container, "-i", `file:${path}`],
]

const samplesTo = (rateHz: number): Array<string> =>
  `-map 0:a:0 -ac 1 -ar ${rateHz} -c:a pcm_f32le -f f32le pipe:1`.split(" ")

/** FFmpeg's words, the same since version 0.11. Without them the file is only called damaged. */
const withoutTrack = "matches no streams"

/** FFmpeg's exit code after a signal that it handles, which is here only that of the time limit. */
const stoppedBySignal = 255

/** A run that crashed is a fault of the program, like a crash of the decoder process. */
const mustHaveExited = ({ code, signal }: RunEnd): void => {
  if (code === null) throw new Error(`ffmpeg ended with ${signal}`)
}

/** Checks what the binding checks before it opens a decoder. @throws Rejected */
const checkFacts = ({ channels, codec, sourceRateHz }: SourceFacts, { decoders }: ProgramUse): void => {
  const known = decoders.includes(codec) || (codec === "mp3" && decoders.includes("mp3float"))
  if (!known) throw unsupportedCodec(codec)
  checkLayout(sourceRateHz, channels)
}

/** Why a run ended without a sample. */
const reasonOf = async (
  use: ProgramUse,
  file: Source,
  known: SourceFacts | undefined,
  run: ProgramRun,
): Promise<Rejected> => {
  if (run.said(withoutTrack)) return noAudioTrack()
  let facts = known
  if (facts === undefined) {
    const again = new ProgramRun(use.path, [...source(use, file), ...description, "pipe:3"], isComplete)
    again.samples.resume()
    const text = await again.facts
    await again.kill()
    facts = factsOf(text)
    if (facts === undefined) return damaged(`${file.container} file`)
    checkFacts(facts, use)
  }
  return run.said("channel layout") ? unmixable() : damaged(`${facts.codec} stream`)
}

export const decodeWith =
  (use: ProgramUse): DecodeFile =>
  async ({ limits, path, rateHz }, sink) => {
    const container = containerAt(path)
    const file = { path, container, maxCpuMs: limits.maxCpuMs }
    const chunks = new SampleChunks({ rateHz, maxSeconds: limits.maxSeconds }, sink.emit)
    const run = new ProgramRun(
      use.path,
      [...source(use, file), ...samplesTo(rateHz), ...description, "pipe:3"],
      isComplete,
    )
    let cpuMs = 0
    let costly: Rejected | undefined
    const watch = setInterval(() => {
      const usage = run.usage()
      if (usage === undefined) return
      cpuMs = Math.max(cpuMs, usage.cpuMs)
      if (cpuMs > limits.maxCpuMs) costly = tooMuchTime()
      else if (usage.residentBytes > maxRssBytes) costly = tooMuchMemory()
      if (costly !== undefined) void run.kill()
    }, sliceMs)
    try {
      const facts = factsOf(await run.facts)
      if (facts !== undefined) {
        checkFacts(facts, use)
        sink.info({ container, ...facts })
      }
      for await (const bytes of run.samples) await chunks.take(bytes as Uint8Array)
      const end = await run.ended
      if (costly !== undefined) throw costly
      if (end.code === stoppedBySignal) throw tooMuchTime()
      mustHaveExited(end)
      if (chunks.samples === 0) {
        throw end.code === 0 ? empty() : await reasonOf(use, file, facts, run)
      }
      await chunks.end()
      return { samples: chunks.samples, damages: run.damages, cpuMs }
    } catch (cause) {
      throw costly ?? cause
    } finally {
      clearInterval(watch)
      await run.kill()
    }
  }
