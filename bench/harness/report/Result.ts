// The result of a run, in the one form that `edgewise bench`, the project's own suites and the comparison write and read: where,
// when and with what it was measured, and sections of parts of figures. The form is versioned, so that a program of another
// version can refuse what it does not understand.
import type { Figure, Part } from "./Figure.ts"
import type { Machine } from "./Machine.ts"

export const resultForm = "edgewise-result"
/** Raised when a field changes its meaning or goes. */
export const resultVersion = 1

/** Processes that computed beside what was measured. */
export interface Neighbours {
  readonly processes: number
  /** 0 to 19; 0 is the priority of ordinary processes. */
  readonly nice: number
  /** They computed for so long, then rested for as long. Absent: they never rested. */
  readonly pulseMs?: number
  /** Processor time that they used, all together, over the time of the run. */
  readonly cores: number
}

/** One request of the timeline. */
export interface TimelinePoint {
  /** Scheduled moment, seconds from the start of the measured time. */
  readonly atSeconds: number
  readonly kind: string
  /** First piece or first audible sample; absent where the kind has none. */
  readonly firstMs?: number
  readonly endMs?: number
  /** Key of a failure. */
  readonly failed?: string
}

/** Requests a second, or clients that send their next request when the last one was answered. */
export type LoadSize =
  | { readonly loop: "open"; readonly ratePerSecond: number }
  | { readonly loop: "closed"; readonly clients: number }

export interface Section {
  /** Unique in the result. */
  readonly name: string
  readonly parts: ReadonlyArray<Part>
  /** What makes its figures doubtful, as sentences. */
  readonly cautions?: ReadonlyArray<string>
  /** Of a load run: the load, and at most 2,000 requests, evenly chosen. */
  readonly load?: LoadSize & { readonly timeline: ReadonlyArray<TimelinePoint> }
}

export interface Result {
  readonly form: typeof resultForm
  readonly version: typeof resultVersion
  readonly suite: string
  /** The commit; `-dirty` after it if files were changed. */
  readonly revision: string
  /** Of the client; with the date. */
  readonly machine: Machine
  /** What a reader needs to repeat the run, without keys. */
  readonly settings: Readonly<Record<string, unknown>>
  /** The server that was measured, where the run did not start it itself. */
  readonly target?: {
    readonly url: string
    /** What the server says of itself; fields that it does not have are absent. */
    readonly reported: Readonly<Record<string, unknown>>
  }
  readonly neighbours?: Neighbours
  /** Absent in results that were kept before this form. */
  readonly elapsedSeconds?: number
  /** Why the run ended before its last section. */
  readonly failure?: string
  readonly sections: ReadonlyArray<Section>
}

/** The figure of a section by its part and its name. */
export const figureIn = (section: Section | undefined, title: string, name: string): Figure | undefined =>
  section?.parts.find((part) => part.title === title)?.figures.find((one) => one.name === name)

/** A file that is no result, as one sentence. */
export class WrongResult extends Error {}

/** @throws WrongResult */
export const resultIn = (value: unknown, name: string): Result => {
  const { form, sections, version } = (value ?? {}) as Partial<Result>
  if (form !== resultForm || !Array.isArray(sections))
    throw new WrongResult(`${name} is no result: it has another form than ${resultForm}`)
  if (version !== resultVersion) {
    throw new WrongResult(
      `${name} has the form of version ${version}; this program reads version ${resultVersion}`,
    )
  }
  return value as Result
}

/** @throws WrongResult */
export const parsed = (text: string, name: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new WrongResult(`${name} is not JSON`)
  }
}

/** @throws WrongResult */
export const readResult = (text: string, name: string): Result => resultIn(parsed(text, name), name)

/** Indented JSON with a line for each figure and each request, so that the files are short to read and to compare. */
export const resultText = (result: Result): string => {
  const lines: Array<string> = []
  const lineOf = (value: unknown): string => `line ${lines.push(JSON.stringify(value)) - 1}`
  const outline = JSON.stringify(
    result,
    (key, value: unknown) =>
      (key === "figures" || key === "timeline") && Array.isArray(value) ? value.map(lineOf) : value,
    1,
  )
  return `${outline.replaceAll(/"line (\d+)"/g, (_, at: string) => lines[Number(at)] ?? "")}\n`
}
