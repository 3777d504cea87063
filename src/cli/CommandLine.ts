// Runs a command tree the way the command line promises: what fails is one line on standard error and exit status 1,
// wrong usage is one line and exit status 2, and standard output carries nothing but what a command printed.
import { Cause, Console, Effect, Exit, Logger, Predicate } from "effect"
import { CliError, CliOutput, Command } from "effect/cli"

const oneLine = (text: string): string => text.trim().replace(/\s*\n\s*/g, " ")

/** Wrong usage names its first mistake; the whole help is a `--help` away. */
const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(
          `${oneLine(event.errors[0]?.message ?? "wrong usage")} (see ${event.commandPath.join(" ")} --help)`,
        )
      : CliOutput.defaultPresenter.present(event),
})

/** The words of an error, or of what caused it where it has none of its own. */
const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== "") return error.message
  return error.cause === undefined ? String(error) : messageOf(error.cause)
}

/** 2 for a mistake in the settings or in a file that they name, where the error says so; otherwise 1. */
const statusOf = (error: unknown): number =>
  Predicate.hasProperty(error, "exitStatus") && error.exitStatus === 2 ? 2 : 1

/** Exit status of a command line, after everything it had to say has been said. */
export const runCommandLine = <const Name extends string, Input, ContextInput, E, R>(
  command: Command.Command<Name, Input, ContextInput, E, R>,
  args: ReadonlyArray<string>,
  version: string,
) =>
  Command.runWith(command, { version })(args).pipe(
    Effect.exit,
    Effect.flatMap((exit) => {
      if (Exit.isSuccess(exit)) return Effect.succeed(0)
      const error = Cause.squash(exit.cause)
      if (CliError.isCliError(error) && error._tag === "ShowHelp") {
        return Effect.succeed(error.errors.length === 0 ? 0 : 2)
      }
      return Effect.as(Console.error(oneLine(messageOf(error))), statusOf(error))
    }),
    Effect.provide([presenter, Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])]),
  )
