// The text of `--help`: options with type, unit and default, settings in groups, lines of at most 100 columns. Pure.
import { Option } from "effect"
import type { HelpDoc } from "effect/cli"
import { settingGroups } from "#config/Settings.ts"
import { flagOfSetting } from "#config/settings/Setting.ts"

export const helpColumns = 100

/** Columns of the left side: the names. A longer name has a line of its own. */
const nameColumns = 30

type FlagDoc = HelpDoc.FlagDoc

/** Lines of at most `columns` characters, broken at spaces. A longer word stays whole. */
const wrapped = (text: string, columns: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const lines: Array<string> = []
    let current = ""
    for (const word of line.split(" ")) {
      if (current !== "" && current.length + 1 + word.length > columns) {
        lines.push(current)
        current = word
      } else {
        current = current === "" ? word : `${current} ${word}`
      }
    }
    return [...lines, current]
  })

/** A name and what is said about it, in two columns. */
const row = (name: string, text: string): ReadonlyArray<string> => {
  const lines = wrapped(text, helpColumns - nameColumns)
  const left = `  ${name}`
  const isLong = left.length + 2 > nameColumns
  const [first = "", ...rest] = lines
  return [
    ...(isLong ? [left] : []),
    (isLong ? " ".repeat(nameColumns) : left.padEnd(nameColumns)) + first,
    ...rest.map((line) => " ".repeat(nameColumns) + line),
  ].map((line) => line.trimEnd())
}

const isSwitch = ({ type }: FlagDoc): boolean => type === "boolean"

/** Effect writes the choices behind the description; here they stand with the default in the second line. */
const aboutFlag = (flag: FlagDoc): string => {
  const text = Option.getOrElse(flag.description, () => "")
  const [, before = text, choices] = /^(.*?) ?\(choices: ([^)]*)\)$/s.exec(text) ?? []
  // A description says the default behind a semicolon, at its end.
  const [, what = before, rest] = /^(.*?); (default: .*)$/s.exec(before) ?? []
  const facts = [
    ...(choices === undefined ? [] : [`one of ${choices}`]),
    ...(isSwitch(flag) ? ["switch; default: off"] : []),
    ...(flag.required ? ["required"] : []),
    ...(rest === undefined ? [] : [rest]),
  ]
  // A setting's description has both lines already.
  return facts.length === 0 || what.includes("\n") ? before : `${what}\n${facts.join("; ")}`
}

const flagName = ({ aliases, name, type, ...flag }: FlagDoc): string => {
  const value = isSwitch({ ...flag, aliases, name, type }) ? "" : ` ${type === "choice" ? "WORD" : type}`
  return [`--${name}`, ...aliases].join(", ") + value
}

const flagRows = (flags: ReadonlyArray<FlagDoc>): ReadonlyArray<string> =>
  flags.flatMap((flag) => row(flagName(flag), aboutFlag(flag)))

const variableOf = (flag: FlagDoc): string | undefined =>
  /EDGEWISE_[A-Z_]+$/.exec(Option.getOrElse(flag.description, () => ""))?.[0]

const section = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0 ? [] : ["", title, ...lines]

/** Settings stand under the headings of their groups if there are several; other options come first. */
const flagSections = (flags: ReadonlyArray<FlagDoc>): ReadonlyArray<string> => {
  const groups = settingGroups.map(({ settings, title }) => ({
    title,
    flags: flags.filter((flag) =>
      Object.values(settings).some(
        (setting) => flagOfSetting(setting) === flag.name && setting.variable === variableOf(flag),
      ),
    ),
  }))
  const filled = groups.filter((group) => group.flags.length > 0)
  const grouped = new Set(filled.flatMap((group) => group.flags))
  const others = flags.filter((flag) => !grouped.has(flag))
  return [
    ...section("OPTIONS", flagRows(others)),
    ...filled.flatMap((group) => section(`${group.title.toUpperCase()} (settings)`, flagRows(group.flags))),
  ]
}

const argumentRows = (doc: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  (doc.args ?? []).flatMap(({ description, name, required, variadic }) =>
    row(
      name,
      [
        Option.getOrElse(description, () => ""),
        [required ? "required" : "optional", ...(variadic ? ["one or more"] : [])].join("; "),
      ].join("\n"),
    ),
  )

const commandRows = (doc: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  (doc.subcommands ?? []).flatMap(({ commands }) =>
    commands.flatMap(({ description, name }) => row(name, description)),
  )

/** The global options, without one that the command has itself. */
const globalFlags = ({ flags, globalFlags = [] }: HelpDoc.HelpDoc): ReadonlyArray<FlagDoc> =>
  globalFlags.filter(({ name }) => !flags.some((flag) => flag.name === name))

/** Effect's own options: every command has them, and their choices stand in their type. */
const shortlyAbout = ({ description }: FlagDoc): string =>
  Option.getOrElse(description, () => "").replace(/ \(choices: .*$/s, "")

export const helpText = (doc: HelpDoc.HelpDoc): string =>
  [
    ...wrapped(doc.description, helpColumns),
    ...section(
      "USAGE",
      wrapped(doc.usage, helpColumns - 2).map((line) => `  ${line}`),
    ),
    ...section("ARGUMENTS", argumentRows(doc)),
    ...flagSections(doc.flags),
    ...section("COMMANDS", commandRows(doc)),
    ...section(
      "GLOBAL OPTIONS",
      globalFlags(doc).flatMap((flag) => row(flagName(flag), shortlyAbout(flag))),
    ),
  ].join("\n")
