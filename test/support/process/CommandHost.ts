// Command lines in one process that keeps the product's modules: a process of its own takes a second of a processor for each, nearly
// all of it for loading them. For commands that end by themselves; what is about processes (signals, standard input) needs
// `startCommand` of NodeProcess.ts.
import { type ChildProcess, fork } from "node:child_process"
import { mainFile, programFile } from "./CompiledCode.ts"

export interface CommandLine {
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface Finished {
  /** Exit status; null when a signal ended it. */
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export class CommandHost {
  #child: ChildProcess | undefined
  #last: Promise<unknown> = Promise.resolve()
  readonly #environment: Readonly<Record<string, string>>

  /** @param environment of the process itself: what Node reads when it starts */
  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment
  }

  /** Runs one command line after all that were asked for before. Fails if the process ends during it. */
  run(line: CommandLine): Promise<Finished> {
    const finished = this.#last.then(() => this.#runNow(line))
    this.#last = finished.catch(() => {})
    return finished
  }

  #runNow(line: CommandLine): Promise<Finished> {
    const child = this.#start()
    return new Promise((resolve, reject) => {
      const onExit = (status: number | null, signal: string | null) => {
        this.#child = undefined
        reject(new Error(`the process of commands ended during ${line.args.join(" ")}: ${signal ?? status}`))
      }
      child.once("exit", onExit)
      child.once("message", (finished: Finished) => {
        child.off("exit", onExit)
        resolve(finished)
      })
      child.send(line)
    })
  }

  #start(): ChildProcess {
    // It ends when the channel to it closes, which is when the process of the tests ends.
    this.#child ??= fork(programFile("test/support/process/commandHostMain"), [mainFile], {
      execArgv: ["--disable-warning=ExperimentalWarning"],
      env: this.#environment,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    })
    return this.#child
  }
}
