// Five thousand requests that are generated from the OpenAPI documents of the three roles.
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Operation } from "../../support/wire/ApiDocument.ts"
import { type DocumentedNode, startDocumented } from "./DocumentedNode.ts"
import { expectDocumented, type Seen } from "./DocumentedRequests.ts"

let node: DocumentedNode
beforeAll(async () => {
  node = await startDocumented()
})
afterAll(() => node.stop())

const statuses = (seen: Seen): string =>
  [...seen]
    .map(([name, counts]) => `${name}: ${[...counts].map((each) => each.join("×")).join(" ")}`)
    .join("\n")

const isForOperators = ({ path }: Operation): boolean => /\/(models\/.+|gpu\/.*|node\/.*)$/.test(path)

/** Operations of which no generated request succeeds; tests of their own do. */
const refusedAlways = [
  // No organization or user is there but that of the keys, whose id is not drawn.
  "DELETE /v1/orgs",
  "DELETE /v1/orgs/answers",
  "DELETE /v1/orgs/jobs",
  "DELETE /v1/orgs/users",
  // The scripted recogniser does not translate.
  "POST /v1/audio/translations",
  // An offer is no text that could be drawn, and so there is no call to end.
  "POST /v1/realtime/calls",
  "POST /v1/realtime/calls/{id}/hangup",
]

it("5,000 requests get documented replies", { timeout: 1_800_000 }, async () => {
  const { target } = node
  const seen: Seen = new Map()
  // First without operators, who unload the models.
  await expectDocumented({ ...target, keys: target.keys.slice(0, 1) }, 3_500, seen)
  await expectDocumented({ ...target, operations: target.operations.filter(isForOperators) }, 1_000, seen)
  await expectDocumented(target, 500, seen)
  // Without successes only the refusals would have been tested.
  const succeeded = [...seen].filter(([, counts]) => [...counts.keys()].some((status) => status < 300))
  expect([...succeeded.map(([name]) => name), ...refusedAlways].toSorted(), statuses(seen)).toEqual(
    target.operations.map(({ name }) => name).toSorted(),
  )
})
