// Strict readers of SubRip and WebVTT for tests. SubRip has no standard: this is the form that every player takes
// (numbered from 1, `HH:MM:SS,mmm`, one blank line after each cue). WebVTT is the W3C grammar, as far as captions
// without settings, identifiers and notes use it. Every deviation is an error.

interface Cue {
  readonly startMs: number
  readonly endMs: number
  readonly text: string
}

const fail = (problem: string): never => {
  throw new Error(problem)
}

const msOf = (parts: RegExpExecArray): number => {
  const [, hours, minutes, seconds, ms] = parts.map(Number) as [number, number, number, number, number]
  if (minutes > 59 || seconds > 59) fail(`no time of day: ${parts[0]}`)
  return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms
}

const timeOf = (text: string, mark: "," | "."): number => {
  const parts = (
    mark === "," ? /^(\d{2,}):(\d\d):(\d\d),(\d{3})$/ : /^(\d{2,}):(\d\d):(\d\d)\.(\d{3})$/
  ).exec(text)
  return parts === null ? fail(`not a time: ${JSON.stringify(text)}`) : msOf(parts)
}

const cueOf = (timing: string, lines: ReadonlyArray<string>, mark: "," | "."): Cue => {
  const times = timing.split(" --> ")
  if (times.length !== 2) fail(`not a timing: ${JSON.stringify(timing)}`)
  const startMs = timeOf(times[0]!, mark)
  const endMs = timeOf(times[1]!, mark)
  if (endMs <= startMs) fail(`ends before it starts: ${timing}`)
  if (lines.length === 0 || lines.some((line) => line.trim() === "")) fail("a cue without text")
  if (lines.some((line) => line.includes("-->"))) fail("an arrow inside a text")
  return { startMs, endMs, text: lines.join("\n") }
}

const ordered = (cues: ReadonlyArray<Cue>): ReadonlyArray<Cue> => {
  cues.forEach((cue, i) => {
    if (i > 0 && cue.startMs < cues[i - 1]!.startMs) fail(`cue ${i + 1} starts before the one in front of it`)
  })
  return cues
}

/** Blocks between blank lines; the text must end with exactly one. */
const blocksOf = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  if (/[\r\0\u2028\u2029]/.test(text)) fail("a control character that ends lines or texts")
  if (text === "") return []
  if (!text.endsWith("\n\n") || text.endsWith("\n\n\n")) fail("does not end with one blank line")
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((block) => block.split("\n"))
}

export const parseSrt = (text: string): ReadonlyArray<Cue> =>
  ordered(
    blocksOf(text).map(([number = "", timing = "", ...lines], i) => {
      if (number !== String(i + 1)) fail(`cue ${i + 1} is numbered ${JSON.stringify(number)}`)
      return cueOf(timing, lines, ",")
    }),
  )

/** Cue text as a player shows it; a `<` that begins no known tag, or a bare `&`, is not allowed here. */
const unescaped = (text: string): string => {
  if (/[<>]/.test(text) || /&(?!(?:amp|lt|gt);)/.test(text)) fail(`not escaped: ${JSON.stringify(text)}`)
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")
}

export const parseVtt = (text: string): ReadonlyArray<Cue> => {
  const [head, ...blocks] = blocksOf(text)
  if (head?.length !== 1 || head[0] !== "WEBVTT") fail("does not begin with WEBVTT and a blank line")
  return ordered(
    blocks.map(([timing = "", ...lines]) => {
      const cue = cueOf(timing, lines, ".")
      return { ...cue, text: unescaped(cue.text) }
    }),
  )
}
