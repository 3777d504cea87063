// The result of `edgewise prove` as text: a table of all checks, what differs, and where the references are published. Pure.
import { table } from "#domain/process/Columns.ts"
import { itself, type ProofDocument } from "./Document.ts"

const words = { pass: "pass", fail: "FAIL", none: "-" } as const

export const pageOf = ({ machine, models }: ProofDocument): string => {
  const all = models.flatMap(({ name, rows }) => rows.map((row) => ({ name, ...row })))
  const sources = [...new Set(all.flatMap(({ reference }) => reference ?? []))].filter(
    (one) => one !== itself,
  )
  const cited = (reference: string | null): string =>
    reference === null ? "-" : reference === itself ? itself : `[${sources.indexOf(reference) + 1}]`
  const cut = (text: string): string => (text.length > 90 ? `${text.slice(0, 90)}…` : text)
  const rows = all.map(({ check, found, name, reference, verdict }, at) => [
    all[at - 1]?.name === name ? "" : name,
    check,
    words[verdict],
    cited(reference),
    cut(found),
  ])
  const failed = all
    .filter(({ verdict }) => verdict === "fail")
    .map(({ check, expected, found, name }) =>
      expected === null ? `${name}, ${check}: ${found}` : `${name}, ${check}: ${found}; expected ${expected}`,
    )
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}`,
    "",
    table(["model", "check", "", "reference", "found"], rows),
    "",
    ...failed,
    ...(failed.length === 0 ? [] : [""]),
    `${itself}: nothing public is known to compare with, so the model is compared with its own answers`,
    ...sources.map((source, at) => `[${at + 1}] ${source}`),
  ].join("\n")
}
