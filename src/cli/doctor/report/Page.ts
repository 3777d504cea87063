// The report as text: the machine, the environment, a table for each kind of model, memory, and limits. Pure.
import { table } from "#domain/process/Columns.ts"
import { digits, shown } from "#harness/report/Format.ts"
import { wideTable } from "#harness/report/Report.ts"
import type { Document, ModelReport, Surrounding } from "./Document.ts"
import { measuredKinds, partsOf } from "./MeasuredFigures.ts"
import { bytesShown, counted } from "./Words.ts"

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
    `memory is read at ${digits(one_thread)} GB/s by one thread, ${digits(all_cores)} GB/s by one on each core`,
  ]
}

/** The model's id, with a mark if its figures are incomplete. */
const nameOf = ({ id, status }: ModelReport): string => (status === "partial" ? `${id} *` : id)

/** A table for each kind of model. */
const measuredTables = (models: ReadonlyArray<ModelReport>): ReadonlyArray<string> =>
  measuredKinds.flatMap((kind) => {
    const parts = models
      .filter((model) => model.kind === kind)
      .flatMap((model) => partsOf(model, nameOf(model)))
    if (parts.length === 0) return []
    const { heading, rows } = wideTable(kind, parts)
    return ["", table(heading, rows)]
  })

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
      shown(model.load_ms, "ms"),
      model.memory_bytes === null ? "-" : bytesShown(model.memory_bytes),
      model.threads === null
        ? "-"
        : `${model.threads}${model.threads_from === null ? "" : ` (${model.threads_from})`}`,
      digits(model.slots),
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
    ...measuredTables(document.models),
    ...loadedTable(document.models),
    ...memoryLines(document),
    ...modelLines(document),
    ...demonstrationLines(document),
    "",
    `measured in ${digits(document.took_seconds)} s with edgewise ${document.version}${document.ok ? "" : "; not every model could be measured"}`,
  ].join("\n")
