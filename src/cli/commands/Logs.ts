// `edgewise logs MODEL`: shows the output and the events of a model's engine on a running node, over the node's HTTP
// interface (protocol 12.5). For operators.
import { Console, Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { modelArgument } from "../shared/ModelOptions.ts"
import { type NodeAccess, operatorAccess, operatorFlags } from "../shared/NodeClient.ts"
import { getText, replyReader } from "../shared/NodeReplies.ts"
import { jsonFlag, printJson, switchFlag } from "../shared/Output.ts"

/** How often `--follow` requests new lines. A guess: soon enough for a person. */
const followEveryMs = 1_000

const Line = Schema.Struct({
  seq: Schema.Int,
  at: Schema.String,
  stream: Schema.String,
  level: Schema.String,
  text: Schema.String,
})
const readLines = replyReader(
  Schema.Struct({ model: Schema.String, status: Schema.String, lines: Schema.Array(Line) }),
  "a list of lines",
)

const linesAfter = (access: NodeAccess, model: string, after: number) =>
  getText(access, `/v1/models/logs?${new URLSearchParams({ model, after: String(after) })}`).pipe(
    Effect.flatMap(readLines),
    Effect.scoped,
  )

const shown = ({ at, level, stream, text }: typeof Line.Type): string =>
  `${at} ${level.toUpperCase().padEnd(5)} ${stream.padEnd(6)} ${text}`

export const logs = Command.make(
  "logs",
  {
    model: modelArgument("MODEL"),
    follow: switchFlag("follow", "Also print new lines until interrupted"),
    json: jsonFlag,
    ...operatorFlags,
  },
  Effect.fn(function* ({ follow, json, key, model, url }) {
    const access = yield* operatorAccess({ url, key })
    const print = (lines: ReadonlyArray<typeof Line.Type>) =>
      Effect.forEach(lines, (line) => Console.log(json ? JSON.stringify(line) : shown(line)), {
        discard: true,
      })
    const first = yield* linesAfter(access, model, 0)
    if (json && !follow) return yield* printJson(first)
    if (first.lines.length === 0) yield* Console.error(`${model} is ${first.status}; there are no lines yet`)
    yield* print(first.lines)
    let after = first.lines.at(-1)?.seq ?? 0
    while (follow) {
      yield* Effect.sleep(followEveryMs)
      const next = yield* linesAfter(access, model, after)
      yield* print(next.lines)
      after = next.lines.at(-1)?.seq ?? after
    }
  }),
).pipe(
  Command.withDescription("Show what a model's engine printed on a running node, and what happened to it"),
)
