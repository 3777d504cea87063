// A program that replaces `nvidia-smi`. Tests choose its output, exit status and duration. It counts its runs in a file beside
// it.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

interface FakeAnswers {
  readonly gpus?: string
  readonly processes?: string
  readonly status?: number
  /** Seconds until its output. */
  readonly delaySeconds?: number
}

export interface FakeNvidiaSmi {
  readonly command: string
  /** Changes its answers from now on. */
  readonly say: (answers: FakeAnswers) => void
  readonly runs: () => number
}

/** Writes the program into `dir`, which belongs to the test. */
export const fakeNvidiaSmi = (dir: string, answers: FakeAnswers): FakeNvidiaSmi => {
  const command = join(dir, "nvidia-smi")
  const runsFile = join(dir, "runs")
  const say = ({ delaySeconds = 0, gpus = "", processes = "", status = 0 }: FakeAnswers) => {
    writeFileSync(join(dir, "gpus"), gpus)
    writeFileSync(join(dir, "processes"), processes)
    const script = [
      "#!/bin/sh",
      `echo "$*" >> "${runsFile}"`,
      ...(delaySeconds === 0 ? [] : [`exec sleep ${delaySeconds}`]),
      `case "$*" in`,
      `  *--query-gpu=*) cat "${join(dir, "gpus")}" ;;`,
      `  *--query-compute-apps=*) cat "${join(dir, "processes")}" ;;`,
      `  *) exit 2 ;;`,
      "esac",
      `exit ${status}`,
    ]
    writeFileSync(command, `${script.join("\n")}\n`)
    chmodSync(command, 0o755)
  }
  say(answers)
  return {
    command,
    say,
    runs: () => (existsSync(runsFile) ? readFileSync(runsFile, "utf8").trim().split("\n").length : 0),
  }
}
