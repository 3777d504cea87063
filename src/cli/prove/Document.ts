// The result of `edgewise prove`: what is written to a file and may be sent to the project. It names weights, checks and figures,
// and nothing of the machine's owner: no host, user or path, no recording, no transcript.
import { homedir, hostname, userInfo } from "node:os"
import type { ModelReport } from "../doctor/report/Document.ts"

/** `pass` and `fail` compare with something; `none`: there is nothing to compare with, or it could not be had. */
type Verdict = "pass" | "fail" | "none"

export interface Row {
  /** E.g. `tokenizer`. */
  readonly check: string
  readonly verdict: Verdict
  readonly found: string
  /** Only of a failure: what the reference has. */
  readonly expected: string | null
  /** Where the reference is published; `itself` if the check only compares the model with itself; null without a comparison. */
  readonly reference: string | null
}

export const itself = "itself"

export const row = (check: string, verdict: Verdict, found: string, more: Partial<Row> = {}): Row => ({
  check,
  verdict,
  found,
  expected: null,
  reference: null,
  ...more,
})

export interface ProvenFile {
  /** In its repository. */
  readonly path: string
  readonly size_bytes: number
  readonly sha256: string
}

export interface ProvenModel {
  readonly name: string
  /** `owner/name@commit` on the hub, or `local`. */
  readonly source: string
  readonly licence: string | null
  readonly adapter: string | null
  readonly files: ReadonlyArray<ProvenFile>
  readonly rows: ReadonlyArray<Row>
  /** As `edgewise doctor --json` has them; null if the model was not measured. */
  readonly figures: ModelReport | null
}

export const schemaName = "edgewise-prove/1"

export interface ProofDocument {
  readonly schema: typeof schemaName
  readonly version: string
  readonly commit: string
  /** Of the day, UTC. */
  readonly date: string
  readonly ok: boolean
  /** Whether the files came from huggingface.co or from another address. */
  readonly hub: "huggingface.co" | "another"
  readonly machine: {
    readonly cpu: string
    readonly cores: number
    readonly memory_bytes: number
    readonly system: string
    readonly node: string
    /** Share of all processors in use before anything was measured. */
    readonly busy_percent: number | null
  }
  readonly models: ReadonlyArray<ProvenModel>
}

/** Names of this machine and its user. Short ones would also be found inside other words. */
const namesHere = (): ReadonlyArray<string> => {
  const user = (() => {
    try {
      return userInfo().username
    } catch {
      return ""
    }
  })()
  return [homedir(), hostname(), user].filter((name) => name.length > 3)
}

/** An absolute path, up to its last part. */
const folders = /(?<![\w.:/])\/(?:[^\s/:'"`]+\/)+/g

/** The text without paths, and without the names of this machine and its user. */
export const withoutPlaces = (text: string, names: ReadonlyArray<string>): string =>
  names.reduce((rest, name) => rest.replaceAll(name, "…"), text.replace(folders, ""))

/** The same for every text in a document. */
export const anonymous = <A>(value: A, names: ReadonlyArray<string> = namesHere()): A => {
  const cleaned = (one: unknown): unknown => {
    if (typeof one === "string") return withoutPlaces(one, names)
    if (Array.isArray(one)) return one.map(cleaned)
    if (typeof one !== "object" || one === null) return one
    return Object.fromEntries(Object.entries(one).map(([key, inner]) => [key, cleaned(inner)]))
  }
  return cleaned(value) as A
}
