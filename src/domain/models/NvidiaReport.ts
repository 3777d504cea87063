// Strict parser of `nvidia-smi`'s output: the requested columns and the printed rows. Pure. A row in any other form is
// a problem; it is never read partly.

/** Columns of `--query-gpu`, in order. The name is last, because only it may contain a comma. */
export const gpuColumns = [
  "index",
  "uuid",
  "memory.total",
  "memory.used",
  "memory.free",
  "utilization.gpu",
  "utilization.memory",
  "temperature.gpu",
  "mig.mode.current",
  "name",
] as const

/** Columns of `--query-compute-apps`, in order. The process's path is last for the same reason. */
export const processColumns = ["gpu_uuid", "pid", "used_gpu_memory", "process_name"] as const

export interface NvidiaGpu {
  readonly index: number
  readonly uuid: string
  readonly name: string
  readonly totalBytes: number
  readonly usedBytes: number
  readonly freeBytes: number
  /** Undefined if the GPU does not report it, e.g. while it is divided into MIG instances. */
  readonly gpuPercent: number | undefined
  readonly memoryPercent: number | undefined
  readonly temperatureC: number | undefined
  readonly mig: boolean
}

export interface NvidiaProcess {
  readonly gpuUuid: string
  readonly pid: number
  readonly name: string
  /** Undefined if the driver does not report it (containers, MIG). */
  readonly usedBytes: number | undefined
}

/** All rows, or why there are none. */
type Parsed<A> = { readonly rows: ReadonlyArray<A> } | { readonly problem: string }

const mebibyte = 1024 * 1024

/**
 * Values that the driver prints for an unknown field: `[N/A]`, `[Not Supported]`, `[Unknown Error]`, `[GPU is lost]`,
 * `N/A`.
 */
const isUnknown = (field: string): boolean => field === "N/A" || /^\[.*\]$/.test(field)

/** A whole number of at most nine digits. Undefined if the driver does not report it, NaN for any other text. */
const numberOf = (field: string): number | undefined => {
  if (isUnknown(field)) return undefined
  return /^\d{1,9}$/.test(field) ? Number(field) : Number.NaN
}

/** The part of a line that a message shows; a driver's lines are short. */
const shown = (line: string): string => JSON.stringify(line.slice(0, 120))

const linesOf = (text: string): ReadonlyArray<string> =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")

/** The first `count - 1` fields, and the rest of the line as the last one. */
const fieldsOf = (line: string, count: number): ReadonlyArray<string> | undefined => {
  const parts = line.split(", ")
  if (parts.length < count) return undefined
  return [...parts.slice(0, count - 1), parts.slice(count - 1).join(", ")].map((part) => part.trim())
}

const gpuOf = (line: string): NvidiaGpu | string => {
  const fields = fieldsOf(line, gpuColumns.length)
  if (fields === undefined) return `not a row of ${gpuColumns.length} columns: ${shown(line)}`
  const [index, uuid = "", total, used, free, gpuPercent, memoryPercent, temperatureC, mig, name = ""] =
    fields
  const numbers = [index, total, used, free, gpuPercent, memoryPercent, temperatureC].map((field) =>
    numberOf(field ?? ""),
  )
  if (numbers.some(Number.isNaN)) return `not a number in ${shown(line)}`
  const [at, totalMb, usedMb, freeMb, gpu, memory, celsius] = numbers
  if (at === undefined || !/^(GPU|MIG)-[0-9a-fA-F-]+$/.test(uuid) || name === "")
    return `no index, uuid or name in ${shown(line)}`
  if (totalMb === undefined || usedMb === undefined || freeMb === undefined)
    return `GPU ${at} does not tell its memory`
  if (usedMb > totalMb || freeMb > totalMb) return `GPU ${at} tells more memory than it has`
  if ((gpu ?? 0) > 100 || (memory ?? 0) > 100) return `more than 100 % in ${shown(line)}`
  return {
    index: at,
    uuid,
    name,
    totalBytes: totalMb * mebibyte,
    usedBytes: usedMb * mebibyte,
    freeBytes: freeMb * mebibyte,
    gpuPercent: gpu,
    memoryPercent: memory,
    temperatureC: celsius,
    mig: mig === "Enabled",
  }
}

const processOf = (line: string): NvidiaProcess | string => {
  const fields = fieldsOf(line, processColumns.length)
  if (fields === undefined) return `not a row of ${processColumns.length} columns: ${shown(line)}`
  const [gpuUuid = "", pid, used, name = ""] = fields
  const [id, usedMb] = [numberOf(pid ?? ""), numberOf(used ?? "")]
  if (id === undefined || Number.isNaN(id) || Number.isNaN(usedMb)) return `not a process: ${shown(line)}`
  return { gpuUuid, pid: id, name, usedBytes: usedMb === undefined ? undefined : usedMb * mebibyte }
}

const parse =
  <A>(rowOf: (line: string) => A | string) =>
  (text: string): Parsed<A> => {
    const rows: Array<A> = []
    for (const line of linesOf(text)) {
      const row = rowOf(line)
      if (typeof row === "string") return { problem: row }
      rows.push(row)
    }
    return { rows }
  }

/** The rows of `--query-gpu`. A machine with a driver and without a GPU prints a sentence instead. */
export const parseGpus = (text: string): Parsed<NvidiaGpu> =>
  text.trim() === "No devices were found" ? { rows: [] } : parse(gpuOf)(text)

export const parseProcesses: (text: string) => Parsed<NvidiaProcess> = parse(processOf)
