// Rows as text in columns, for terminals. Pure.

const isNumber = (cell: string): boolean => /^-?[\d.]+$/.test(cell)

/** The lines of a table, the heading first. Columns of numbers are right-aligned; they may have empty cells and dashes. */
export const columnLines = (
  heading: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
): ReadonlyArray<string> => {
  const lines = [heading, ...rows]
  const widths = heading.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)))
  const right = heading.map((_, at) => {
    const cells = rows.map((row) => row[at] ?? "").filter((cell) => cell !== "" && cell !== "-")
    return cells.length > 0 && cells.every(isNumber)
  })
  return lines.map((line) =>
    line
      .map((cell, at) => (right[at] ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
      .join("  ")
      .trimEnd(),
  )
}

export const table = (heading: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  columnLines(heading, rows).join("\n")
