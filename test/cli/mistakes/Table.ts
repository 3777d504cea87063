// The operators' mistakes and the line that each prints. OperatorMistakes.long.test.ts makes each of them; the table stands in
// docs/operator-mistakes.md.
import { catalog, files } from "./FilesAndCatalog.ts"
import { clocks, databases, decoders, disk, memory, ports, settings } from "./NodeAndMachine.ts"
import { certificates, weights } from "./WeightsAndCertificates.ts"
import type { OperatorMistake } from "./World.ts"

const of = (category: OperatorMistake["category"], rows: ReadonlyArray<Omit<OperatorMistake, "category">>) =>
  rows.map((row): OperatorMistake => ({ ...row, category }))

export const operatorMistakes: ReadonlyArray<OperatorMistake> = [
  ...of("files", files),
  ...of("catalog", catalog),
  ...of("settings", settings),
  ...of("ports in use", ports),
  ...of("disk full", disk),
  ...of("memory", memory),
  ...of("clock", clocks),
  ...of("decoder", decoders),
  ...of("database", databases),
  ...of("weights", weights),
  ...of("certificates", certificates),
]

const cell = (text: string): string => text.replaceAll("|", "\\|")

/** The page of the documentation. */
export const page = (): string => `# Operator mistakes

Each row is a mistake, the line that \`edgewise\` prints on standard error, and the exit status: 2 for settings, usage and the
files that an operator writes, 1 for any other failure of the start, and "serves" if the node prints a warning and
serves. Every row is a test (\`test/cli/mistakes/OperatorMistakes.long.test.ts\`), and a test keeps this page equal to it.
\`DIR\` is a folder, \`PORT\` a port. For a
warning the table has the message of the log line, with the model and the reason if it has them. A catalog with several mistakes
prints a line for each, at most 20.

\`edgewise check\` finds the same mistakes without serving.

| | mistake | line | exit status |
|---|---|---|---|
${operatorMistakes
  .map(
    ({ category, line, mistake, status }) =>
      `| ${category} | ${cell(mistake)} | \`${cell(line)}\` | ${status} |`,
  )
  .join("\n")}
`
