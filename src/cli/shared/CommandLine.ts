// Runs a command. A failure is one line on standard error and exit status 1. Wrong usage, wrong settings and wrong
// files of the operator are one line each and exit status 2. Standard output carries only what a command prints.
import { Cause, Console, Data, Effect, Exit, Logger } from "effect"
import { CliError, CliOutput, Command } from "effect/cli"
import { environmentMistakes } from "#config/Config.ts"
import { helpText } from "../help/HelpText.ts"
import { inWords } from "./FileErrors.ts"
import { visible } from "./Output.ts"

/** A message may quote what a node has answered. */
const oneLine = (text: string): string =>
  visible(text)
    .trim()
    .replace(
      /\s*Did you mean this\?\s*(.*)/s,
      (_, names: string) => `; did you mean ${names.split(/\s*\n\s*/).join(" or ")}`,
    )
    .replace(/\s*\n\s*/g, " ")

/** Wrong usage prints its first mistake only; `--help` prints the help. */
const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "Help"
      ? Console.log(helpText(event.helpDoc))
      : event._tag === "InvalidInvocation"
        ? Console.error(
            `${oneLine(event.errors[0]?.message ?? "wrong usage")} (see ${event.commandPath.join(" ")} --help)`,
          )
        : CliOutput.defaultPresenter.present(event),
})

/** The message of an error, or of its cause if it has none. */
const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== "") return error.message
  return error.cause === undefined ? String(error) : messageOf(error.cause)
}

/** Ends a command that has already printed what is wrong. */
export class AlreadyReported extends Data.TaggedError("AlreadyReported")<{ readonly exitStatus: number }> {}

/** The lines of an error with several mistakes; one line for any other. */
export const linesOf = (error: unknown): ReadonlyArray<string> => {
  const lines: unknown = typeof error === "object" && error !== null && "lines" in error ? error.lines : []
  const texts = Array.isArray(lines) ? lines.filter((line) => typeof line === "string") : []
  return (texts.length === 0 ? [messageOf(error)] : texts).map((text) => oneLine(inWords(text)))
}

export const exitStatusOf = (error: unknown): number =>
  typeof error === "object" && error !== null && "exitStatus" in error && error.exitStatus === 2 ? 2 : 1

const asksForHelp = (args: ReadonlyArray<string>): boolean =>
  args.some((arg) => ["--help", "-h", "--version", "-v"].includes(arg))

const printLines = (lines: ReadonlyArray<string>) =>
  Effect.forEach(lines, (line) => Console.error(line), { discard: true })

/** Runs the command line and returns its exit status after all output was written. */
export const runCommandLine = <const Name extends string, Input, ContextInput, E, R>(
  command: Command.Command<Name, Input, ContextInput, E, R>,
  args: ReadonlyArray<string>,
  version: string,
) => {
  // `check` reports them together with everything else.
  const unknown = asksForHelp(args) || args[0] === "check" ? [] : environmentMistakes()
  if (unknown.length > 0) return Effect.as(printLines(unknown), 2)
  return Command.runWith(command, { version })(args).pipe(
    Effect.exit,
    Effect.flatMap((exit) => {
      if (Exit.isSuccess(exit)) return Effect.succeed(0)
      const error = Cause.squash(exit.cause)
      if (CliError.isCliError(error) && error._tag === "ShowHelp") {
        return Effect.succeed(error.errors.length === 0 ? 0 : 2)
      }
      if (error instanceof AlreadyReported) return Effect.succeed(error.exitStatus)
      return Effect.as(printLines(linesOf(error)), exitStatusOf(error))
    }),
    Effect.provide([presenter, Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])]),
  )
}

/**
 * Ends the process when its output has been taken: a pipe holds 64 KiB, and `process.exit` alone drops what waits behind them. A
 * reader that has closed its end, as `head` does, ends the process at once.
 */
export const endProcess = async (exitStatus: number): Promise<never> => {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => process.exit(exitStatus))
    await new Promise((taken) => stream.write("", taken))
  }
  return process.exit(exitStatus)
}
