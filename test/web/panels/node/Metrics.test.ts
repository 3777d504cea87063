// What the playground reads from the text of /metrics.
import { expect, it } from "vitest"
import { bytesText, modelMetrics } from "../../../../src/web/panels/node/Metrics.js"

it("reads the models' figures and the node's memory, and skips everything else", () => {
  const { budgetBytes, claimedBytes, models } = modelMetrics(`# HELP edgewise_slots Slots
# TYPE edgewise_slots gauge
edgewise_memory_budget_bytes 22748859187
edgewise_memory_claimed_bytes 696782848
edgewise_slots{model="llm"} 16
edgewise_slots_busy{model="llm"} 2
edgewise_requests_waiting{model="llm"} 1
edgewise_engine_resident_bytes{model="owner/a \\"b\\""} 1.5e8
edgewise_engine_restarts_total{model="llm"} 3
edgewise_model_requests_total{model="llm",outcome="done"} 7
nonsense
`)
  expect([budgetBytes, claimedBytes]).toEqual([22_748_859_187, 696_782_848])
  expect(models.get("llm")).toEqual({ slots: 16, busy: 2, waiting: 1, restarts: 3 })
  expect([...models.values()].map(({ residentBytes }) => residentBytes)).toContain(1.5e8)
})

it("shows bytes in MB and GB", () => {
  expect([150_000_000, 22_748_859_187].map(bytesText)).toEqual(["150 MB", "22.75 GB"])
})
