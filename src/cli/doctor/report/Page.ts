// The report as text: the machine, the environment, a table for each kind of model, memory, and limits. Pure.
import { table } from "#domain/process/Columns.ts"
import type { Document, ModelReport, Surrounding, Times } from "./Document.ts"
import { bytesShown, counted, msShown, orDash, shown } from "./Words.ts"

const timesShown = (times: Times | null): string =>
  times === null
    ? "-"
    : times.count === 1
      ? msShown(times.median)
      : `${msShown(times.median)} (worst ${msShown(times.worst)})`

const marks = { ok: "ok     ", warning: "warning", failure: "FAILURE" } as const

const surroundingLines = ({ advice, detail, name, verdict }: Surrounding): ReadonlyArray<string> => [
  `${marks[verdict]}  ${name}: ${detail}`,
  ...(advice === null ? [] : [`         what to do: ${advice}`]),
]

const machineLines = ({ machine }: Document): ReadonlyArray<string> => {
  const { all_cores, one_thread } = machine.read_gb_per_second
  const given = `${counted(machine.cores, "core")}, ${counted(machine.hardware_threads, "hardware thread")}`
  return [
    `${machine.cpu}, ${given}, ${bytesShown(machine.memory_bytes)}, ${machine.system}`,
    `memory is read at ${orDash(one_thread)} GB/s by one thread, ${orDash(all_cores)} GB/s by one on each core`,
  ]
}

/** The model's id, with a mark if its figures are incomplete. */
const nameOf = ({ id, status }: ModelReport): string => (status === "partial" ? `${id} *` : id)

const textTable = (models: ReadonlyArray<ModelReport>): ReadonlyArray<string> => {
  const rows = models.flatMap((model) =>
    (model.text?.levels ?? []).map((level, at) => [
      at === 0 ? nameOf(model) : "",
      String(level.streams),
      orDash(level.prompt_tokens_per_second),
      orDash(level.reply_tokens_per_second),
      timesShown(level.first_token_ms),
      level.first_token_prompt_tokens === null ? "-" : String(level.first_token_prompt_tokens),
    ]),
  )
  const heading = ["text", "streams", "prompt tokens/s", "reply tokens/s", "first token", "after a prompt of"]
  return rows.length === 0 ? [] : ["", table(heading, rows)]
}

const speechTable = (models: ReadonlyArray<ModelReport>): ReadonlyArray<string> => {
  const rows = models.flatMap((model) => {
    const { speech } = model
    if (speech === null) return []
    const play = speech.play_outs
    const admitted = play === null ? "-" : `${play.refused ? "" : "at least "}${play.admitted}`
    return [
      [
        nameOf(model),
        orDash(speech.real_time_factor),
        timesShown(speech.first_audio_ms),
        admitted,
        timesShown(play?.first_audio_ms ?? null),
        play === null ? "-" : String(play.ran_dry),
      ],
    ]
  })
  const heading = [
    "speech",
    "real-time factor",
    "first audio",
    "play-outs admitted",
    "their first audio",
    "ran dry",
  ]
  return rows.length === 0 ? [] : ["", table(heading, rows)]
}

const transcriptionTable = (models: ReadonlyArray<ModelReport>): ReadonlyArray<string> => {
  const rows = models.flatMap((model) => {
    const { transcription } = model
    if (transcription === null) return []
    const { live, real_time_factor, short_clip_ms } = transcription
    const atOnce = live?.many_speakers == null ? "" : ` (${live.many_speakers.admitted} with all speaking)`
    const admitted =
      live?.admitted == null ? "-" : `${live.refused === true ? "" : "at least "}${live.admitted}${atOnce}`
    return [
      [
        nameOf(model),
        orDash(real_time_factor),
        short_clip_ms === null ? "-" : msShown(short_clip_ms),
        admitted,
        timesShown(live?.one_speaker?.caption_lag_ms ?? null),
        timesShown(live?.many_speakers?.caption_lag_ms ?? null),
        timesShown(live?.one_speaker?.final_ms ?? null),
      ],
    ]
  })
  const heading = [
    "transcription",
    "real-time factor",
    "clip of 4 s",
    "live sessions admitted",
    "caption lag alone",
    "lag with all speaking",
    "stop to final",
  ]
  return rows.length === 0 ? [] : ["", table(heading, rows)]
}

const librariesShown = ({ libraries }: ModelReport): string =>
  libraries
    .map(({ name, provider, variant, version }) =>
      [name, version ?? "", `(${[provider, variant].filter((part) => part !== null).join(", ")})`].join(" "),
    )
    .join(" + ")

const loadedTable = (models: ReadonlyArray<ModelReport>): ReadonlyArray<string> => {
  const rows = models
    .filter(({ load_ms }) => load_ms !== null)
    .map((model) => [
      nameOf(model),
      model.load_ms === null ? "-" : msShown(model.load_ms),
      model.memory_bytes === null ? "-" : bytesShown(model.memory_bytes),
      model.threads === null
        ? "-"
        : `${model.threads}${model.threads_from === null ? "" : ` (${model.threads_from})`}`,
      orDash(model.slots),
      librariesShown(model),
    ])
  const heading = ["model", "load", "memory", "threads", "slots", "library"]
  return rows.length === 0 ? [] : ["", table(heading, rows)]
}

const memoryLines = ({ memory }: Document): ReadonlyArray<string> =>
  memory === null
    ? []
    : [
        "",
        `memory: ${bytesShown(memory.budget_bytes)} for the node and its models; the node has ${bytesShown(memory.node_bytes)}, the models of a start ${bytesShown(memory.models_bytes)}, ${bytesShown(memory.left_bytes)} are left for others`,
      ]

const modelLines = ({ models }: Document): ReadonlyArray<string> => {
  const lines = models.flatMap((model) => [
    ...model.limits.map((limit) => `${model.id}: ${limit}`),
    ...model.incomplete.map((what) => `${model.id} *: ${what}`),
    ...(model.reason === null ? [] : [`${model.id} ${model.status}: ${model.reason}`]),
  ])
  const measured = models.filter(({ same_as }) => same_as === null)
  const same = measured.flatMap(({ id }) => {
    const others = models.filter(({ same_as }) => same_as === id).map((model) => model.id)
    return others.length === 0 ? [] : [`${others.join(", ")}: the same weights and settings as ${id}`]
  })
  return lines.length + same.length === 0 ? [] : ["", ...lines, ...same]
}

const demonstrationLines = ({ models }: Document): ReadonlyArray<string> =>
  models.some(({ demonstration, status }) => demonstration && status !== "skipped")
    ? ["figures of demonstration weights say little about weights of other sizes"]
    : []

export const pageOf = (document: Document): string =>
  [
    ...machineLines(document),
    "",
    ...document.surroundings.flatMap(surroundingLines),
    ...textTable(document.models),
    ...speechTable(document.models),
    ...transcriptionTable(document.models),
    ...loadedTable(document.models),
    ...memoryLines(document),
    ...modelLines(document),
    ...demonstrationLines(document),
    "",
    `measured in ${shown(document.took_seconds)} s with edgewise ${document.version}${document.ok ? "" : "; not every model could be measured"}`,
  ].join("\n")
