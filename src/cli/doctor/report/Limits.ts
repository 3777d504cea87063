// States what limits a model, as far as the measured figures show it. Pure. The thresholds are guesses that allow for
// an error of ten to fifteen percent in measurements of a few seconds.

import { longestFirstAudioMs } from "#domain/audio/FirstAudioCost.ts"
import { fullShare } from "#domain/audio/LivePace.ts"
import { maxStreamLoad } from "#domain/models/StreamLoad.ts"
import { digits, shown } from "#harness/report/Format.ts"
import type { Cores, Machine, ModelReport, Speech, TextLevel, Transcription } from "./Document.ts"
import { bytesShown, counted } from "./Words.ts"

/** Share of its threads' time from which an engine counts as busy all the time. */
const busyShare = 0.85
/** Share of the measured bandwidth from which reading weights counts as the limit. */
const bandwidthShare = 0.6
/** If more streams give less than this many times the tokens of one, they share what one stream uses already. */
const flatGain = 1.3

type Given = Pick<Machine, "cores" | "last_level_cache_bytes" | "quota_cores" | "read_gb_per_second">

/** Cores that this process may use. */
const usableCores = ({ cores, quota_cores }: Given): number =>
  Math.min(cores, quota_cores ?? Number.POSITIVE_INFINITY)

/** Why a model does not use the remaining cores. */
const whyNotMore = ({ threads_from, threads_measured }: ModelReport): string => {
  switch (threads_from) {
    case "catalog":
      return "`runtime.threads` of the catalog says so"
    case "measured":
    case "kept":
      return `more did not pay when it was loaded${threads_measured === null ? "" : ` (${threads_measured})`}`
    case "size":
      return "its work is too small for more, or the machine was too busy to measure; `runtime.threads` sets another number"
    case null:
      return "`runtime.threads` sets another number"
  }
}

/** How much of the time the engine's threads computed while it had as much work as possible. */
const busyLine = (machine: Given, report: ModelReport, cores: Cores | null): ReadonlyArray<string> => {
  const { threads } = report
  if (threads === null || cores === null || cores.engine === null) return []
  const share = cores.engine / threads
  if (share < busyShare) {
    const others = `the node and the load client used ${digits(cores.node)} cores, other work ${digits(cores.other)}`
    return [
      `waiting: its ${counted(threads, "thread")} computed ${digits(share * 100)} % of the time; ${others}`,
    ]
  }
  const busy = `its ${counted(threads, "thread was", "threads were")} busy all the time`
  const free = Math.floor(usableCores(machine) - threads)
  return [
    free >= 1
      ? `threads: ${busy}, and the machine has ${counted(free, "more core")}: ${whyNotMore(report)}`
      : `computing: ${busy}, on all available cores`,
  ]
}

/** Whether reading the weights limits one reply: each token reads all of them. */
const bandwidthLine = (
  machine: Given,
  weightBytes: number,
  threads: number | null,
  tokensPerSecond: number,
) => {
  const { all_cores, one_thread } = machine.read_gb_per_second
  const limit = threads === 1 ? one_thread : all_cores
  // Weights that fit the cache say nothing about memory.
  if (limit === null || weightBytes < 2 * (machine.last_level_cache_bytes ?? 0)) return []
  const used = (weightBytes * tokensPerSecond) / 1e9
  const facts = `each token reads ${bytesShown(weightBytes)} of weights, ${digits(used)} GB/s; reading alone reached ${digits(limit)} GB/s here`
  return [
    used >= limit * bandwidthShare
      ? `one reply: memory bandwidth (${facts})`
      : `one reply: not memory bandwidth (${facts})`,
  ]
}

const rateOf = (levels: ReadonlyArray<TextLevel>, streams: number): number | null =>
  levels.find((level) => level.streams === streams)?.reply_tokens_per_second ?? null

const textLimits = (machine: Given, report: ModelReport, levels: ReadonlyArray<TextLevel>) => {
  const { slots, threads, weights_bytes } = report
  const one = rateOf(levels, 1)
  const last = levels.findLast((level) => level.reply_tokens_per_second !== null)
  const lines: Array<string> = []
  if (one !== null) lines.push(...bandwidthLine(machine, weights_bytes, threads, one))
  const most = last?.reply_tokens_per_second ?? null
  if (one !== null && most !== null && last !== undefined && last.streams > 1) {
    const gain = most / one
    lines.push(
      gain < flatGain
        ? `more streams: ${last.streams} give ${digits(gain)} times the tokens of one, so they share what one uses alone`
        : `more streams: ${last.streams} give ${digits(gain)} times the tokens of one`,
    )
  }
  if (last !== undefined) lines.push(...busyLine(machine, report, last.cores))
  if (slots !== null && last !== undefined && slots < last.streams)
    lines.push(
      `slots: ${counted(slots, "reply is", "replies are")} written side by side, others wait (\`options.slots\`)`,
    )
  return lines
}

/** Which rule of the admission of streams refused one more than these (docs/speech.md). */
const refusalLine = (
  slots: number | null,
  admitted: number,
  factor: number | null,
): ReadonlyArray<string> => {
  if (slots !== null && admitted >= slots) {
    return [`slots: ${counted(slots, "reply is", "replies are")} computed at once (\`options.slots\`)`]
  }
  if (factor !== null && (admitted + 1) * factor > maxStreamLoad) {
    return [
      `admission: the node lets streams take ${maxStreamLoad * 100} % of the engine, at ${digits(factor)} s of work per second of speech`,
    ]
  }
  return [
    `admission: of streams that begin at once, those are refused that would not sound within ${longestFirstAudioMs / 1000} s`,
  ]
}

const speechLimits = (machine: Given, report: ModelReport, speech: Speech) => {
  const lines = [...busyLine(machine, report, speech.cores)]
  const { play_outs, real_time_factor } = speech
  const factor = play_outs?.admission_factor ?? null
  if (real_time_factor !== null && real_time_factor > 1)
    lines.push(
      `slower than real time: ${digits(real_time_factor)} s of work per second of speech, so a stream has gaps`,
    )
  if (play_outs?.refused === true) lines.push(...refusalLine(report.slots, play_outs.admitted, factor))
  if (play_outs !== null && play_outs.ran_dry > 0) {
    const streams = counted(play_outs.ran_dry, "stream")
    lines.push(
      `${streams} of ${play_outs.admitted} had a gap: the machine did not keep up with what was admitted`,
    )
  }
  return lines
}

const transcriptionLimits = (machine: Given, report: ModelReport, transcription: Transcription) => {
  const { cores, live } = transcription
  const lines = [...busyLine(machine, report, cores)]
  if (live === null) return lines
  const { admitted, refused, window_ms } = live
  if (refused === true && admitted !== null && window_ms !== null) {
    lines.push(
      `live admission: a window of ${live.window_seconds} s costs ${shown(window_ms, "ms")}, and sessions may take ${fullShare * 100} % of the engine`,
    )
  }
  if (window_ms !== null && window_ms > live.window_seconds * 1000)
    lines.push(
      "live captions: a window takes longer to compute than it lasts, so captions fall behind even for one speaker",
    )
  const many = live.many_speakers
  if (many !== null && many.admitted < many.asked) {
    lines.push(
      `live admission: with all of ${many.asked} speaking, windows cost more and ${many.asked - many.admitted} were refused`,
    )
  }
  if (many !== null && many.failed > 0)
    lines.push(`live sessions: ${many.failed} of ${many.admitted} ended with an error`)
  return lines
}

export const limitsOf = (machine: Given, report: ModelReport): ReadonlyArray<string> => {
  if (report.text !== null) return textLimits(machine, report, report.text.levels)
  if (report.speech !== null) return speechLimits(machine, report, report.speech)
  if (report.transcription !== null) return transcriptionLimits(machine, report, report.transcription)
  return []
}
