// The language model reads a session's instructions when it gets them, not when it is asked first.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { llamaModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const requests = (node: TestNode) =>
  node.run(
    Effect.gen(function* () {
      const { id } = yield* (yield* Accounts).showOrg("dev")
      const rows = yield* (yield* UsageLedger).usage(id, 0)
      return rows.reduce((all, row) => all + row.requests, 0)
    }),
  )

it("the first answer finds the instructions read, though nothing was asked before", async () => {
  const built = await startNode({
    models: [{ ...llamaModel, runtime: { load: "start" } }, listener(), fakeVoice],
  })
  try {
    await untilLoaded(built, "llama", "listener", "fake-voice")
    const client = await ConversationClient.open(built, "llama")
    const before = await requests(built)
    const instructions = "You answer briefly and politely, and always in plain words. ".repeat(6)
    const asked = async () => {
      client.send({
        type: "response.create",
        response: {
          input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] }],
        },
      } as never)
      const { response } = await client.nth("response.done", client.of("response.done").length + 1)
      return response.usage as unknown as {
        input_tokens: number
        input_token_details: { cached_tokens: number }
      }
    }
    const ended = async () =>
      [...(await built.metrics())].reduce(
        (sum, [name, value]) =>
          name.startsWith("edgewise_model_requests_total") && name.includes('"llama"') ? sum + value : sum,
        0,
      )
    const endedBefore = await ended()
    client.update({ output_modalities: ["text"], max_output_tokens: 4, instructions })
    await client.nth("session.updated")
    await eventually(async () => (await ended()) > endedBefore, "the instructions are read")
    const usage = await asked()
    // All but the user's message and the template around it.
    expect(usage.input_token_details.cached_tokens).toBeGreaterThan(usage.input_tokens / 2)
    // Reading ahead is no request that is charged.
    await expect.poll(() => requests(built)).toBe(before + 1)
    client.close()
  } finally {
    await built.stop()
  }
})
