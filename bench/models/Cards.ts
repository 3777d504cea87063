// Writes the measured part of the model cards. Its only input is the results of the evaluation, so a card states no
// figure that was not measured. Pure.
import { type Finding, isMet, number, type Section } from "../support/Findings.ts"

export interface Results {
  /** Machine and date in one line. */
  readonly machine: string
  /** Evaluated weight file → SHA-256. */
  readonly weights: Readonly<Record<string, string>>
  readonly sections: ReadonlyArray<Section>
}

const BEGIN = "<!-- measured by `npm run models:eval -- --write`: do not edit -->"
const END = "<!-- end of what was measured -->"

/** Folder of a card → the sections that it quotes, named by the first word of their titles. */
export const cards: Readonly<Record<string, ReadonlyArray<string>>> = {
  "whisper-demo-en": ["Transcription"],
  "kokoro-demo": ["Voices", "Clones"],
  "llama-demo": ["Chat"],
  "vision-demo": ["Pictures"],
}

const value = ({ spread, unit }: Finding): string => {
  const middle = `${number(spread.median)} ${unit}`.trim()
  return spread.readings > 1
    ? `${middle} (${number(spread.low)} to ${number(spread.high)}, ${spread.readings} readings)`
    : middle
}

const verdict = (found: Finding): string =>
  found.goal === undefined
    ? ""
    : `${found.goal.is} ${found.goal.value}: ${isMet(found) ? "met" : "**missed**"}`

const sectionText = ({ findings, method, title }: Section): string =>
  [
    `**${title.replace(/^\w+: /, (kind) => kind)}.** ${method}`,
    "",
    "| what | measured | goal |",
    "|---|---|---|",
    ...findings.map((found) => `| ${found.what} | ${value(found)} | ${verdict(found)} |`),
  ].join("\n")

export const measuredText = ({ machine, sections }: Results, kinds: ReadonlyArray<string>): string =>
  [
    BEGIN,
    `${machine}. One reading, or the median with the lowest and the highest.`,
    ...sections.filter(({ title }) => kinds.some((kind) => title.startsWith(kind))).map(sectionText),
    END,
  ].join("\n\n")

/** The card with its measured part replaced; undefined if the card has no such part. */
export const withMeasured = (card: string, measured: string): string | undefined => {
  const [from, to] = [card.indexOf(BEGIN), card.indexOf(END)]
  return from < 0 || to < from ? undefined : card.slice(0, from) + measured + card.slice(to + END.length)
}
