// Subtitles: texts with times, and their two file formats, SRT and WebVTT. Pure.

/** @typedef {{ readonly startMs: number, readonly endMs: number, readonly text: string }} Cue */

/** Lengths at which a cue of live captions ends: two lines of usual subtitles, and a time to read them. Guesses. */
const mostCharacters = 84
const longestMs = 6_000

/** @param {string} text */
const wordsOf = (text) => text.split(/\s+/).filter((word) => word !== "")

/**
 * The segments of a transcript (`verbose_json`) as cues.
 * @param {ReadonlyArray<{ start: number, end: number, text: string }>} segments seconds
 * @returns {Array<Cue>}
 */
export const cuesOfSegments = (segments) =>
  segments
    .map(({ end, start, text }) => ({
      startMs: Math.round(start * 1000),
      endMs: Math.max(Math.round(end * 1000), Math.round(start * 1000) + 1),
      text: text.trim(),
    }))
    .filter(({ text }) => text !== "")

/**
 * Cues of a live session. Its text has no times, but its captions have: a word was said at the latest when a caption first
 * had it at its place, so its time is up to one window late.
 * @param {ReadonlyArray<{ audioMs: number, text: string }>} history the captions of the session, the final text last
 * @returns {Array<Cue>}
 */
export const cuesOfHistory = (history) => {
  const last = history[history.length - 1]
  if (last === undefined) return []
  const words = wordsOf(last.text)
  /** When each word was first there, in order. */
  const times = words.map(() => last.audioMs)
  let found = 0
  for (const { audioMs, text } of history) {
    const shown = wordsOf(text)
    let same = 0
    while (same < words.length && shown[same] === words[same]) same++
    for (; found < same; found++) times[found] = audioMs
  }
  /** @type {Array<Cue>} */
  const cues = []
  let startMs = 0
  /** @type {Array<string>} */
  let text = []
  for (const [at, word] of words.entries()) {
    text.push(word)
    const endMs = Math.max(times[at] ?? last.audioMs, startMs + 1)
    const next = words[at + 1]
    const nextLength = next === undefined ? Number.POSITIVE_INFINITY : [...text, next].join(" ").length
    const isLong = nextLength > mostCharacters || (times[at + 1] ?? endMs) - startMs > longestMs
    if (!isLong && !(/[.?!]$/.test(word) && text.length > 3)) continue
    cues.push({ startMs, endMs, text: text.join(" ") })
    startMs = endMs
    text = []
  }
  if (text.length > 0)
    cues.push({ startMs, endMs: Math.max(last.audioMs, startMs + 1), text: text.join(" ") })
  return cues
}

/**
 * @param {ReadonlyArray<Cue>} cues
 * @param {number} byMs
 * @returns {Array<Cue>}
 */
export const shifted = (cues, byMs) =>
  cues.map(({ endMs, startMs, text }) => ({ startMs: startMs + byMs, endMs: endMs + byMs, text }))

/**
 * @param {number} ms
 * @param {string} point between seconds and milliseconds
 */
const clock = (ms, point) => {
  const digits = (/** @type {number} */ value, /** @type {number} */ length) =>
    String(value).padStart(length, "0")
  const seconds = Math.floor(ms / 1000)
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return `${parts.map((part) => digits(part, 2)).join(":")}${point}${digits(Math.round(ms) % 1000, 3)}`
}

/** A cue's text on one line, without an arrow that would end it. @param {string} text */
const plain = (text) => text.replaceAll(/\s+/g, " ").replaceAll("-->", "→").trim()

/** @param {ReadonlyArray<Cue>} cues */
export const srtOf = (cues) =>
  cues
    .map(
      ({ endMs, startMs, text }, at) =>
        `${at + 1}\n${clock(startMs, ",")} --> ${clock(endMs, ",")}\n${plain(text)}\n`,
    )
    .join("\n")

/** @param {ReadonlyArray<Cue>} cues */
export const vttOf = (cues) => {
  const escaped = (/** @type {string} */ text) =>
    plain(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
  const lines = cues.map(
    ({ endMs, startMs, text }) => `${clock(startMs, ".")} --> ${clock(endMs, ".")}\n${escaped(text)}\n`,
  )
  return ["WEBVTT\n", ...lines].join("\n")
}
