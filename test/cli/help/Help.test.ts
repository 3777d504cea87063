// `--help` of every command: each option with its type or unit and its default, each setting in its group, lines of at most 100
// columns. The commands are those of src/main.ts.
import { readFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Option } from "effect"
import { CliOutput, Command, type HelpDoc } from "effect/cli"
import { beforeAll, expect, it } from "vitest"
import { helpColumns, helpText } from "#cli/help/HelpText.ts"
import { settingGroups } from "#config/Settings.ts"
import { flagOfSetting } from "#config/settings/Setting.ts"

type AnyCommand = Command.Command<string, unknown, unknown, unknown, never>

const main = readFileSync(new URL("../../../src/main.ts", import.meta.url), "utf8")
const entry = /async \(\) => \(await import\("([^"]+)"\)\)\.(\w+)/g

const topCommands = (): Promise<ReadonlyArray<AnyCommand>> =>
  Promise.all(
    [...main.matchAll(entry)].map(async ([, path = "", name = ""]) => {
      const module = (await import(/* @vite-ignore */ path)) as Readonly<Record<string, AnyCommand>>
      return module[name]!
    }),
  )

/** The documents of a command and of the commands below it. */
const docsOf = async (
  edgewise: AnyCommand,
  path: ReadonlyArray<string>,
): Promise<ReadonlyArray<HelpDoc.HelpDoc>> => {
  const docs: Array<HelpDoc.HelpDoc> = []
  const presenter = CliOutput.layerPresenter({
    present: (event) => Effect.sync(() => void (event._tag === "Help" && docs.push(event.helpDoc))),
  })
  const run = Command.runWith(edgewise, { version: "0" })([...path, "--help"])
  await Effect.runPromise(Effect.exit(Effect.provide(run, Layer.merge(presenter, NodeServices.layer))))
  const doc = docs[0]!
  const below = (doc.subcommands ?? []).flatMap(({ commands }) => commands.map(({ name }) => name))
  return [doc, ...(await Promise.all(below.map((name) => docsOf(edgewise, [...path, name])))).flat()]
}

let docs: ReadonlyArray<HelpDoc.HelpDoc>
beforeAll(async () => {
  const edgewise = Command.make("edgewise").pipe(Command.withSubcommands([...(await topCommands())] as never))
  docs = await docsOf(edgewise as never, [])
})

const nameOf = ({ commandPath = [] }: HelpDoc.HelpDoc): string => commandPath.join(" ")

/** The lines of one option. */
const linesOf = (text: string, flag: string): string => {
  const lines = text.split("\n")
  const at = lines.findIndex((line) => new RegExp(`^ {2}--${flag}(?![\\w-])`).test(line))
  const end = lines.findIndex((line, index) => index > at && !line.startsWith("   "))
  return lines.slice(at, end).join(" ").replaceAll(/ +/g, " ")
}

it("finds every command", () => {
  expect(docs.length).toBeGreaterThan(25)
  expect(docs.map(nameOf)).toEqual(expect.arrayContaining(["edgewise serve", "edgewise keys create"]))
})

it("has lines of at most 100 columns", () => {
  const long = docs.flatMap((doc) =>
    helpText(doc)
      .split("\n")
      .filter((line) => line.length > helpColumns)
      .map((line) => `${nameOf(doc)}: ${line}`),
  )
  expect(long).toEqual([])
})

it("says of every option what it is and what it is without it", () => {
  const lacking = docs.flatMap((doc) =>
    doc.flags.flatMap((flag) => {
      const lines = linesOf(helpText(doc), flag.name)
      const isKnown = / default: \S/.test(lines) || / required/.test(lines)
      // Effect's own names say nothing about units.
      const hasType = !["string", "integer", "number"].includes(flag.type)
      return isKnown && hasType && Option.isSome(flag.description)
        ? []
        : [`${nameOf(doc)} --${flag.name} (${flag.type}): ${lines}`]
    }),
  )
  expect(lacking).toEqual([])
})

it("shows every setting under its group's heading with its unit, its default and its variable", () => {
  for (const command of ["serve", "check"]) {
    const text = helpText(docs.find((doc) => nameOf(doc) === `edgewise ${command}`)!)
    for (const { settings, title } of settingGroups) {
      const from = text.indexOf(`\n${title.toUpperCase()} (settings)\n`)
      const group = text.slice(from, text.indexOf("\n\n", from + 1))
      for (const setting of Object.values(settings)) {
        const flag = flagOfSetting(setting)
        const { value, variable } = setting
        const lines = linesOf(`${group}\n`, flag)
        expect(lines).toContain(`--${flag} ${value} `)
        expect(lines).toMatch(new RegExp(`; default: \\S.*; ${variable}$`))
      }
    }
  }
})

it("names the unit of every setting that has one", () => {
  const units: Readonly<Record<string, string>> = { Seconds: "SECONDS", Ms: "MS", Mb: "MB", Days: "DAYS" }
  for (const { settings } of settingGroups) {
    for (const [name, { value }] of Object.entries(settings)) {
      const unit = Object.entries(units).find(([end]) => name.endsWith(end))?.[1]
      if (unit !== undefined) expect([name, value]).toEqual([name, unit])
    }
  }
})
