// Memory of an upload of 100 MB, and how soon a larger one is refused.
import { readFile, writeFile } from "node:fs/promises"
import { Effect } from "effect"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { Stage } from "./Stage.ts"
import type { Answer, UploadAsk } from "./speakerMain.ts"

export type UploadsPlan = RoundsPlan

/** The largest upload (protocol 9.1). */
const limitBytes = 100 * 1024 * 1024
/** Bytes that a multipart parser holds back, because a boundary could begin in them. */
const lookAheadBytes = 64

const mib = 1024 * 1024
/** 1 Gbit/s. */
const networkBytesPerSecond = 125_000_000

/** Resident memory now and its peak since `forget`, bytes; NaN if the system does not provide it. */
const resident = async (pid: number): Promise<{ readonly now: number; readonly peak: number }> => {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]) * 1024
  return { now: of("VmRSS"), peak: of("VmHWM") }
}
/** 5 sets the peak to what is resident now (proc(5)). */
const forget = (pid: number) => writeFile(`/proc/${pid}/clear_refs`, "5").catch(() => {})

const expectStatus = (answer: Answer, status: number) =>
  answer.status === status
    ? Effect.succeed(answer)
    : Effect.fail(new ChildFailed({ child: "edgewise serve", detail: `an upload answered ${answer.status}` }))

export const uploads = (stage: Stage, plan: UploadsPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const { child, target } = stage.gateway
    const grownBy = (asked: Pick<UploadAsk, "fileBytes" | "bytesPerSecond">) =>
      Effect.gen(function* () {
        yield* Effect.promise(() => forget(child.pid))
        const before = yield* Effect.promise(() => resident(child.pid))
        const beganMs = performance.now()
        // Zeros are no audio, which is detected once all of them have arrived.
        yield* Effect.flatMap(stage.speakers.ask("upload", { target, ...asked }), (answer) =>
          expectStatus(answer, 400),
        )
        const tookMs = performance.now() - beganMs
        const after = yield* Effect.promise(() => resident(child.pid))
        return { grownMiB: (after.peak - before.now) / mib, tookMs }
      })
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const paced = yield* grownBy({ fileBytes: limitBytes, bytesPerSecond: networkBytesPerSecond })
        const burst = yield* grownBy({ fileBytes: limitBytes })
        const stopAfter = limitBytes + lookAheadBytes
        const refused = yield* Effect.flatMap(
          stage.speakers.ask("upload", { target, fileBytes: limitBytes + 4096, stopAfter }),
          (answer) => expectStatus(answer, 413),
        )
        return {
          pacedMiB: paced.grownMiB,
          burstMiB: burst.grownMiB,
          mibPerSecond: 100 / (burst.tookMs / 1000),
          lateMs: refused.elapsedMs,
        }
      }),
    )
    const of = (part: keyof (typeof rounds)[number]) => rounds.map((round) => round[part])
    return {
      title: "Uploads of 100 MB",
      method:
        "the peak of the gateway process's resident memory during an upload, less what was resident before it; then " +
        "the time from the byte over the limit (which is not the body's last) to the first byte of the answer",
      figures: [
        figure("resident memory grown by, sent at 1 Gbit/s", "MiB", of("pacedMiB"), atMost(16)),
        figure(
          "resident memory grown by, sent at once from the same machine",
          "MiB",
          of("burstMiB"),
          atMost(16),
        ),
        figure("taken and written to disk", "MiB/s", of("mibPerSecond")),
        figure("413 after the byte over the limit", "ms", of("lateMs"), atMost(50)),
      ],
    }
  })
