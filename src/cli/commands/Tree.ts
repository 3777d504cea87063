// `edgewise tree`: the supervision tree of a running node, drawn as text.

import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { NodeTreeRecord, type TreeRecord } from "#api/operations/NodeTree.ts"
import { table } from "#domain/process/Columns.ts"
import { operatorAccess, operatorFlags } from "../shared/NodeClient.ts"
import { getText, replyReader } from "../shared/NodeReplies.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"

const readTree = replyReader(NodeTreeRecord)

/** Seconds as people write them: 12s, 3m20s, 5h02m, 4d03h. */
const ageOf = (seconds: number): string => {
  const two = (n: number) => String(Math.floor(n)).padStart(2, "0")
  if (seconds < 60) return `${Math.floor(seconds)}s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h${two((seconds % 3_600) / 60)}m`
  return `${Math.floor(seconds / 86_400)}d${two((seconds % 86_400) / 3_600)}h`
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

const holdsOf = ({ memory_bytes, requests, sessions, threads }: TreeRecord["holds"]): string =>
  [
    ...(memory_bytes === undefined ? [] : [`${Math.round(memory_bytes / 1024 ** 2)} MB`]),
    ...(threads === undefined ? [] : [counted(threads, "thread")]),
    ...(sessions === undefined ? [] : [counted(sessions, "session")]),
    ...(requests === undefined ? [] : [counted(requests, "request")]),
  ].join(", ")

/** A row for each node, indented by branches; `branch` and `below` begin its own line and those of its children. */
const rowsOf = (node: TreeRecord, branch = "", below = ""): ReadonlyArray<ReadonlyArray<string>> => {
  const { age_seconds, children, children_total, holds, kind, mailbox, name, restarts, state } = node
  const left = children_total - children.length
  return [
    [
      `${branch}${name}`,
      kind,
      state,
      ageOf(age_seconds),
      String(restarts),
      mailbox === null ? "-" : `${mailbox.depth}/${mailbox.bound}`,
      holdsOf(holds),
    ],
    ...children.flatMap((child, n) => {
      const isLast = n === children.length - 1 && left === 0
      return rowsOf(child, `${below}${isLast ? "└─ " : "├─ "}`, `${below}${isLast ? "   " : "│  "}`)
    }),
    ...(left === 0 ? [] : [[`${below}└─ and ${left} more`]]),
  ]
}

/** A line for each part that has given up, under the name of its parent. */
const gaveUpLines = ({ children, gave_up, name }: TreeRecord): ReadonlyArray<string> => [
  ...gave_up.map(
    ({ name: part, reason, recovered, restarts, seconds_ago, outcome }) =>
      `${part} (${name}) gave up ${ageOf(seconds_ago)} ago after ${counted(restarts, "restart")}: ${reason}; ` +
      (recovered ? "it runs again" : outcome),
  ),
  ...children.flatMap(gaveUpLines),
]

/** The drawing of a tree, and what has given up in it. */
export const drawTree = (tree: TreeRecord): string => {
  const drawing = table(["name", "kind", "state", "age", "restarts", "mailbox", "holds"], rowsOf(tree))
  return [drawing, ...gaveUpLines(tree)].join("\n")
}

export const tree = Command.make(
  "tree",
  { json: jsonFlag, ...operatorFlags },
  Effect.fn(function* ({ json, key, url }) {
    const access = yield* operatorAccess({ url, key })
    const record = yield* readTree(yield* getText(access, "/v1/node/tree"))
    if (json) return yield* printJson(record)
    yield* Console.log(drawTree(record.tree))
  }, Effect.scoped),
).pipe(
  Command.withDescription(
    "Show what runs on a node: devices, models, engines, live sessions and jobs, with their states and restarts",
  ),
)
