// How the units of each kind are put into a step message and read from it. Pieces of text come by the thousand, so they
// travel without an object each, except those with a detail; all other units travel as they are.
import type { Packed, PackedText, RequestId, UnitEvent } from "./EngineProtocol.ts"
import type { DeltaDetail } from "./Text.ts"
import type { EngineKind, Unit } from "./Verbs.ts"

/** Collects the units of one step message. */
export interface Packer<K extends EngineKind> {
  readonly add: (id: RequestId, unit: Unit<K>) => void
  /** What was added since the last call; undefined if nothing was. */
  readonly take: () => Packed[K] | undefined
}

/** Receives the units of a step message in their order; `atMs` is the time when the message arrived. */
export interface UnitReader<K extends EngineKind> {
  onUnit(id: RequestId, unit: Unit<K>, atMs: number): void
}

interface Packing<K extends EngineKind> {
  readonly packer: () => Packer<K>
  readonly read: (packed: Packed[K], reader: UnitReader<K>, atMs: number) => void
}

const textPacker = (): Packer<"text"> => {
  let texts: Array<string> = []
  let numbers: Array<number> = []
  let details: Array<readonly [at: number, detail: DeltaDetail]> | undefined
  return {
    add: (id, { completionTokens, detail, text }) => {
      if (detail !== undefined) {
        details ??= []
        details.push([texts.length, detail])
      }
      texts.push(text)
      numbers.push(id, completionTokens)
    },
    take: () => {
      if (texts.length === 0) return undefined
      const packed = details === undefined ? { texts, numbers } : { texts, numbers, details }
      texts = []
      numbers = []
      details = undefined
      return packed
    },
  }
}

const readTexts = (
  { details, numbers, texts }: PackedText,
  reader: UnitReader<"text">,
  atMs: number,
): void => {
  let nextDetail = 0
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i]
    const id = numbers[2 * i]
    const completionTokens = numbers[2 * i + 1]
    if (text === undefined || id === undefined || completionTokens === undefined) return
    const detailed = details?.[nextDetail]
    if (detailed?.[0] === i) {
      nextDetail++
      reader.onUnit(id, { text, completionTokens, detail: detailed[1] }, atMs)
    } else {
      reader.onUnit(id, { text, completionTokens }, atMs)
    }
  }
}

const unitPacker = <K extends EngineKind>() => {
  let events: Array<UnitEvent<K>> = []
  return {
    add: (id: RequestId, unit: Unit<K>) => void events.push({ id, unit }),
    take: () => {
      if (events.length === 0) return undefined
      const packed = events
      events = []
      return packed
    },
  }
}

const readUnits = <K extends EngineKind>(
  events: ReadonlyArray<UnitEvent<K>>,
  reader: UnitReader<K>,
  atMs: number,
): void => {
  for (const { id, unit } of events) reader.onUnit(id, unit, atMs)
}

export const packings: { readonly [K in EngineKind]: Packing<K> } = {
  text: { packer: textPacker, read: readTexts },
  speech: { packer: unitPacker<"speech">, read: readUnits<"speech"> },
  transcription: { packer: unitPacker<"transcription">, read: readUnits<"transcription"> },
  embedding: { packer: unitPacker<"embedding">, read: readUnits<"embedding"> },
  detection: { packer: unitPacker<"detection">, read: readUnits<"detection"> },
}
