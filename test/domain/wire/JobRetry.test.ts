// The states of a job, and the state that follows a failed run: pure tables.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  AtCapacity,
  EngineFailed,
  InvalidRequest,
  ModelNotLoaded,
  PaymentRequired,
} from "#domain/wire/Errors.ts"
import { isTransient, maxEngineFailures, retryAfterMs } from "#domain/wire/JobRetry.ts"
import { isFinished, type JobEvent, type JobStatus, nextJobStatus } from "#domain/wire/JobStatus.ts"
import { modeOf } from "#domain/wire/Transcription.ts"

const events: ReadonlyArray<JobEvent> = ["start", "complete", "fail", "cancel", "return"]

describe("job states", () => {
  it("a finished job stays as it is, whatever happens", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...events), { maxLength: 30 }), (happened) => {
        let status: JobStatus = "accepted"
        for (const event of happened) {
          const next = nextJobStatus(status, event)
          if (isFinished(status)) expect(next).toBeUndefined()
          else if (next !== undefined) status = next
        }
        // Only a job that runs is completed or failed.
        if (status === "completed" || status === "failed") expect(happened).toContain("start")
      }),
    )
  })

  it("what waits can be started, and what runs can be given back", () => {
    expect(nextJobStatus("accepted", "start")).toBe("processing")
    expect(nextJobStatus("processing", "return")).toBe("accepted")
    expect(nextJobStatus("accepted", "complete")).toBeUndefined()
  })
})

describe("a failed run", () => {
  const engine = new EngineFailed({ model: "m", reason: "crashed", detail: "" })

  it("waits where the failure passes by itself", () => {
    expect(retryAfterMs(new PaymentRequired(), 0)).toBeLessThanOrEqual(5_000)
    expect(retryAfterMs(new AtCapacity({ model: "m", retryAfterMs: 700 }), 0)).toBe(700)
    expect(retryAfterMs(new ModelNotLoaded({ model: "m" }), 0)).toBeGreaterThan(0)
  })

  it("is given up where an engine keeps failing at one place, and where it is the file's fault", () => {
    for (let failures = 0; failures < maxEngineFailures; failures++) {
      expect(retryAfterMs(engine, failures)).toBeGreaterThan(0)
    }
    expect(retryAfterMs(engine, maxEngineFailures)).toBeUndefined()
    const wrong = new InvalidRequest({ field: "file", problem: "x" })
    expect([isTransient(wrong), retryAfterMs(wrong, 0)]).toEqual([false, undefined])
  })
})

describe("the mode of a request", () => {
  it.each([
    [{}, true, "job"],
    [{}, false, "sync"],
    [{ sync: "true" }, true, "sync"],
    [{ stream: "TRUE" }, false, "stream"],
    [{ stream: "0", sync: "false" }, true, "job"],
    [{ stream: "1", sync: "0" }, true, "stream"],
  ])("%j, model in the query: %s", (parameters, modelInQuery, mode) => {
    expect(modeOf(parameters, modelInQuery)).toEqual({ mode })
  })

  it("is none with both flags", () => {
    expect(modeOf({ stream: "1", sync: "true" }, true)).toHaveProperty("problem")
  })
})
