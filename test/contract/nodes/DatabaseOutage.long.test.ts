// Outage of a database that nodes share, without a grace: under running nodes, at a start, and for the command line.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { poll, transcribe, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { startCommand } from "../../support/nodes/NodeProcess.ts"
import { complete, SharedNodes } from "../../support/nodes/SharedNodes.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, type TestNode, temporaryDir } from "../../support/nodes/TestNode.ts"
import { databasePassword } from "../../support/servers/PostgresServer.ts"

/** 30 s of audio take it 0.7 s: two minutes of audio end during the outage. */
const slow = listener({ callMs: 700, pieceSeconds: 30 }, { id: "slow-listener" })

describe("a shared database", needs("postgresql"), () => {
  let shared: SharedNodes
  beforeAll(async () => {
    shared = await SharedNodes.start([fakeModel, slow], { graceSeconds: 0, ownServer: true })
    // A server, two nodes and their engines: a long timeout for a busy machine.
  })
  afterAll(() => shared?.stop())

  const wav = (seconds: number) => wavOf(noise(seconds)) as Uint8Array<ArrayBuffer>
  const submitTo = async (node: TestNode, key: string, seconds: number, model: string) => {
    const answer = await transcribe({ base: node.base, key }, wav(seconds), { query: { model } })
    expect(answer.status).toBe(202)
    return ((await answer.json()) as { job_id: string }).job_id
  }

  it("answer 503 while the database is away, lose no receipt that fits the queue, and go on by themselves", async () => {
    const { key, orgId } = await shared.newOrg()
    expect((await complete(shared.one, key)).status).toBe(200)
    const job = await submitTo(shared.one, key, 120, "slow-listener")
    const owner = { base: shared.two.base, key }
    await eventually(async () => (await poll(owner, job)).body.status === "processing", "the job is in work")
    // Begun before, charged during the outage.
    const firsts = async () =>
      (await shared.one.metrics()).get('edgewise_time_to_first_token_ms_count{model="fake"}') ?? 0
    const before = await firsts()
    const during = Array.from({ length: 5 }, () =>
      complete(shared.one, key, { tokens: 20, tokenMs: 5, signalAt: 10 }),
    )
    await eventually(async () => (await firsts()) === before + 5, "the requests are in work")
    await shared.server.kill()
    process.kill(shared.one.gauges("fake").pid!, "SIGUSR2")
    expect((await Promise.all(during)).map(({ status }) => status)).toEqual(Array(5).fill(200))
    // Keys that a node has read from the database count for two seconds.
    await eventually(
      async () => (await complete(shared.one, key)).status === 503,
      "keys are read from the database again",
    )
    const refused = await Promise.all([
      complete(shared.one, key),
      complete(shared.two, key),
      complete(shared.one, `svc_${"x".repeat(33)}`),
    ])
    for (const answer of refused) {
      expect([answer.status, await answer.json()]).toEqual([503, { detail: "Store is unavailable" }])
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
    }
    const health = async () => {
      const answer = await shared.one.fetch("/health")
      return [answer.status, ((await answer.json()) as { status: string }).status].join(" ")
    }
    await eventually(async () => (await health()) === "200 degraded", "the node says so")
    await shared.server.start()
    await eventually(async () => (await health()) === "200 healthy", "the node says that it is over")
    await eventually(async () => (await complete(shared.one, key)).status === 200, "the node works again")
    await eventually(async () => (await complete(shared.two, key)).status === 200, "the other does")
    await eventually(async () => {
      return ((await shared.usage(orgId)).find(({ kind }) => kind === "text")?.requests ?? 0) >= 7
    }, "every receipt is there")
    // The running job neither failed nor was lost.
    expect(await untilDone(owner, job)).toMatchObject({ status: 200, body: { status: "completed" } })
    const spoken = (await shared.usage(orgId)).filter(({ kind }) => kind === "transcription")
    expect(spoken).toMatchObject([{ requests: 1, audioMs: 120_000 }])
  })

  it("share the command line, which shows no password", async () => {
    const env = { EDGEWISE_DATABASE_URL: shared.databaseUrl, EDGEWISE_DATA_DIR: shared.dataDir(0) }
    const made = await startCommand(["keys", "create", "--org", "from-outside", "--json"], env).finished
    expect([made.status, made.stderr]).toEqual([0, ""])
    const { api_key } = JSON.parse(made.stdout) as { api_key: string }
    expect((await complete(shared.one, api_key)).status).toBe(200)
    expect((await complete(shared.two, api_key)).status).toBe(200)

    const wrong = shared.databaseUrl.replace(databasePassword, `${databasePassword}-no`)
    const unreachable = shared.databaseUrl.replace(/:\d+\//, ":1/")
    const elsewhere = temporaryDir()
    const own = { EDGEWISE_DATA_DIR: elsewhere.path, EDGEWISE_DATABASE_URL: "" }
    const refused = await Promise.all([
      startCommand(["serve", "--database-url", unreachable], own).finished,
      startCommand(["orgs", "show", "from-outside"], { ...env, EDGEWISE_DATABASE_URL: wrong }).finished,
    ])
    for (const { status, stderr, stdout } of refused) {
      expect(status).toBe(1)
      // A process that may use one core says so first.
      expect(stderr.replace(/^.*this process may use one CPU thread.*\n/, "")).toMatch(
        /^postgres:\/\/127\.0\.0\.1:\d+\/postgres: [^\n]+\n$/,
      )
      expect(stderr + stdout).not.toContain(databasePassword)
    }
    elsewhere.remove()
  })
})
