// The measured figures of doctor's document in the form of all measurements (bench/harness/report): its tables are made of them, and
// `edgewise bench compare` compares two documents by them. Pure.
import { type Figure, type Part, rangeFigure, single } from "#harness/report/Figure.ts"
import { type Result, resultForm, resultVersion, type Section } from "#harness/report/Result.ts"
import type { Document, ModelReport, Speech, TextLevel, Times, Transcription } from "./Document.ts"
import { counted } from "./Words.ts"

const number = (
  name: string,
  unit: string,
  value: number | null | undefined,
  better?: Figure["better"],
): Figure => single(name, unit, value ?? Number.NaN, better)

const times = (name: string, measured: Times | null | undefined): Figure =>
  rangeFigure(name, "ms", {
    median: measured?.median ?? null,
    low: measured?.best ?? null,
    high: measured?.worst ?? null,
    readings: measured?.count ?? 0,
  })

const levelFigures = (level: TextLevel): ReadonlyArray<Figure> => [
  number("prompt tokens", "1/s", level.prompt_tokens_per_second, "more"),
  number("reply tokens", "1/s", level.reply_tokens_per_second, "more"),
  times("first token", level.first_token_ms),
  number("after a prompt of", "tokens", level.first_token_prompt_tokens),
]

const speechFigures = ({ first_audio_ms, play_outs, real_time_factor }: Speech): ReadonlyArray<Figure> => [
  number("real-time factor", "", real_time_factor, "less"),
  times("first audio", first_audio_ms),
  number("play-outs admitted", "", play_outs?.admitted, "more"),
  times("their first audio", play_outs?.first_audio_ms),
  number("ran dry", "", play_outs?.ran_dry, "less"),
]

const transcriptionFigures = ({
  live,
  real_time_factor,
  short_clip_ms,
}: Transcription): ReadonlyArray<Figure> => [
  number("real-time factor", "", real_time_factor, "less"),
  number("clip of 4 s", "ms", short_clip_ms, "less"),
  number("live sessions admitted", "", live?.admitted, "more"),
  number("with all speaking", "", live?.many_speakers?.admitted, "more"),
  times("caption lag alone", live?.one_speaker?.caption_lag_ms),
  times("lag with all speaking", live?.many_speakers?.caption_lag_ms),
  times("stop to final", live?.one_speaker?.final_ms),
]

/** docs/doctor.md says how each is measured. */
const method = ""

/** @param name of the model, in the titles */
export const partsOf = ({ speech, text, transcription }: ModelReport, name: string): ReadonlyArray<Part> => {
  if (text !== null)
    return text.levels.map((level) => ({
      title: `${name}, ${counted(level.streams, "stream")}`,
      method,
      figures: levelFigures(level),
    }))
  if (speech !== null) return [{ title: name, method, figures: speechFigures(speech) }]
  if (transcription !== null) return [{ title: name, method, figures: transcriptionFigures(transcription) }]
  return []
}

export const measuredKinds = ["text", "speech", "transcription"] as const

const kindSection = (kind: ModelReport["kind"], models: ReadonlyArray<ModelReport>): Section => {
  const own = models.filter((model) => model.kind === kind)
  const cautions = own.flatMap(({ id, incomplete }) => incomplete.map((what) => `${id}: ${what}`))
  return {
    name: kind,
    parts: own.flatMap((model) => partsOf(model, model.id)),
    ...(cautions.length === 0 ? {} : { cautions }),
  }
}

const machineSection = ({ machine, models }: Document): Section => ({
  name: "machine and models",
  parts: [
    {
      title: "the machine",
      method,
      figures: [
        number("memory read by one thread", "GB/s", machine.read_gb_per_second.one_thread, "more"),
        number("memory read by all cores", "GB/s", machine.read_gb_per_second.all_cores, "more"),
      ],
    },
    ...models
      .filter(({ load_ms }) => load_ms !== null)
      .map(({ id, load_ms, memory_bytes }) => ({
        title: id,
        method,
        figures: [
          number("load", "ms", load_ms, "less"),
          number("resident memory", "bytes", memory_bytes, "less"),
        ],
      })),
  ],
})

export const resultOf = (document: Document): Result => {
  const { machine, models, seconds, started_at, took_seconds, version } = document
  return {
    form: resultForm,
    version: resultVersion,
    suite: "doctor",
    revision: version,
    machine: {
      startedAt: started_at,
      cpu: machine.cpu,
      cores: machine.cores,
      memoryGiB: Number((machine.memory_bytes / 2 ** 30).toFixed(1)),
      system: machine.system,
      node: machine.node,
      loadBefore: machine.load_1m,
    },
    settings: { seconds },
    elapsedSeconds: took_seconds,
    sections: [machineSection(document), ...measuredKinds.map((kind) => kindSection(kind, models))],
  }
}
