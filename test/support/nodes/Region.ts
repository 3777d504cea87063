// Nodes as separate processes on one Postgres database with shared uploads, for tests that kill and freeze them.
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import postgres from "postgres"
import { Accounts } from "#store/accounts/Accounts.ts"
import { postgresStoreLayer } from "#store/Store.ts"
import { type PostgresServer, startPostgres } from "../servers/PostgresServer.ts"
import { type Relay, startRelay } from "../servers/Relay.ts"
import { type NodeProcess, startProcess } from "./NodeProcess.ts"
import type { TestModel } from "./TestCatalog.ts"
import { temporaryDir } from "./TestNode.ts"

interface JobState {
  readonly id: string
  readonly status: string
  readonly node_id: string
  readonly attempt: number
}

interface Account {
  readonly key: string
  readonly orgId: string
}

const makeOrg = (url: string, name: string, credits?: number): Promise<Account> =>
  Effect.runPromise(
    Effect.provide(
      Effect.gen(function* () {
        const accounts = yield* Accounts
        const org = credits === undefined ? { paymentMethod: true } : { creditsMicroDollars: credits }
        const { id } = yield* accounts.createOrg({ name, ...org })
        const { apiKey } = yield* accounts.createKey({ org: name })
        return { key: apiKey, orgId: id }
      }),
      Layer.fresh(postgresStoreLayer(url)),
    ),
  )

interface RegionOptions {
  readonly models: ReadonlyArray<TestModel>
  readonly nodes: number
  /** Settings and variables of the node of that index. */
  readonly env?: (index: number) => Readonly<Record<string, string>>
  /** Settings of the server, which replace those that every server has. */
  readonly database?: ReadonlyArray<string>
  /** Connections of the nodes to the database go through a relay. */
  readonly relayed?: boolean
  /** The database has a standby, which the nodes' address names as well. */
  readonly standby?: boolean
}

type Sql = ReturnType<typeof postgres>

const connect = (url: string): Sql => {
  const { pathname, searchParams } = new URL(url)
  return postgres(url.split("?")[0] ?? "", {
    max: 2,
    onnotice: () => {},
    database: pathname.slice(1),
    connection: { search_path: searchParams.get("search_path") ?? "public" },
  })
}

export class Region {
  readonly server: PostgresServer
  readonly key: string
  readonly orgId: string
  readonly #options: RegionOptions
  readonly #relay: Relay | undefined
  readonly #standby: Awaited<ReturnType<PostgresServer["standby"]>> | undefined
  /** Of the server that takes writes. */
  #url: string
  readonly #nodesUrl: string
  /** Connections of the test itself. */
  #sql: Sql
  readonly #uploads = temporaryDir()
  readonly #dirs: ReadonlyArray<ReturnType<typeof temporaryDir>>
  readonly #nodes: Array<NodeProcess | undefined> = []

  private constructor(
    server: PostgresServer,
    url: string,
    account: Account,
    options: RegionOptions,
    relay: Relay | undefined,
    standby: Awaited<ReturnType<PostgresServer["standby"]>> | undefined,
  ) {
    this.server = server
    this.#url = url
    this.#relay = relay
    this.#standby = standby
    this.key = account.key
    this.orgId = account.orgId
    this.#options = options
    this.#dirs = Array.from({ length: options.nodes }, () => temporaryDir())
    this.#sql = connect(url)
    const [, direct = ""] = /@([^/]*)/.exec(url) ?? []
    const hosts = [
      relay === undefined ? direct : `127.0.0.1:${relay.port}`,
      ...(standby === undefined ? [] : [`127.0.0.1:${standby.port}`]),
    ]
    this.#nodesUrl = url.replace(`@${direct}`, `@${hosts.join(",")}`)
  }

  static async start(options: RegionOptions): Promise<Region> {
    const server = await startPostgres(options.database)
    const url = await server.freshUrl()
    const account = await makeOrg(url, "acme")
    const relay = options.relayed === true ? await startRelay(server.port) : undefined
    const standby = options.standby === true ? await server.standby() : undefined
    const region = new Region(server, url, account, options, relay, standby)
    for (let index = 0; index < options.nodes; index++) await region.startNode(index)
    return region
  }

  /** Connections of the test itself, to the server that takes writes. */
  get sql(): Sql {
    return this.#sql
  }

  /** Between the nodes and the database, where they are `relayed`. */
  get relay(): Relay {
    return this.#relay!
  }

  /** An organization with these credits, in micro-dollars, or with a payment method if absent. */
  newOrg(name: string, credits?: number): Promise<Account> {
    return makeOrg(this.#url, name, credits)
  }

  /** Kills the server that takes writes and makes its standby the one that does. */
  async failOver(): Promise<void> {
    await this.server.kill()
    await this.#standby!.promote()
    await this.#sql.end({ timeout: 1 })
    this.#url = this.#url.replace(`:${this.server.port}/`, `:${this.#standby!.port}/`)
    this.#sql = connect(this.#url)
  }

  /** Starts a node on its own directory, also after it was killed. */
  async startNode(index: number): Promise<void> {
    this.#nodes[index] = await this.#startOn(this.#dirs[index]!.path, index)
  }

  /** Starts a node on a copy of another's directory, which removes the copy. It must refuse. */
  async startCopy(dataDir: string): Promise<void> {
    try {
      await (await this.#startOn(dataDir)).dispose()
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  }

  #startOn(dataDir: string, index = 0): Promise<NodeProcess> {
    return startProcess({
      models: this.#options.models,
      env: {
        EDGEWISE_DATA_DIR: dataDir,
        EDGEWISE_DATABASE_URL: this.#nodesUrl,
        EDGEWISE_UPLOADS: this.#uploads.path,
        EDGEWISE_ROLES: "edge",
        EDGEWISE_LOG_LEVEL: "error",
        ...this.#options.env?.(index),
      },
    })
  }

  get uploads(): string {
    return this.#uploads.path
  }

  dataDir(index: number): string {
    return this.#dirs[index]!.path
  }

  node(index: number): NodeProcess {
    const node = this.#nodes[index]
    if (node === undefined) throw new Error(`node ${index} does not run`)
    return node
  }

  /** Indexes of the nodes that were not killed. */
  get running(): ReadonlyArray<number> {
    return this.#nodes.flatMap((node, index) => (node === undefined ? [] : [index]))
  }

  target(index: number): { readonly base: string; readonly key: string } {
    return { base: this.node(index).base, key: this.key }
  }

  id(index: number): string {
    return readFileSync(join(this.dataDir(index), "node-id"), "utf8").trim()
  }

  async kill(index: number): Promise<void> {
    const node = this.node(index)
    this.#nodes[index] = undefined
    node.signal("SIGKILL")
    await node.exited
    await node.dispose()
  }

  /** Stops a node as an operator does, and waits for its end. */
  async stopNode(index: number): Promise<void> {
    const node = this.node(index)
    node.signal("SIGTERM")
    await node.exited
    this.#nodes[index] = undefined
    await node.dispose()
  }

  async jobs(): Promise<ReadonlyArray<JobState>> {
    const rows = await this.#sql`SELECT id, status, node_id, attempt::int AS attempt FROM transcription_jobs`
    return rows as unknown as ReadonlyArray<JobState>
  }

  /** Receipts of jobs: id → milliseconds of audio. */
  async receipts(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#sql`
      SELECT receipt_id, audio_ms::int AS audio_ms FROM usage_ledger WHERE kind = 'transcription'`
    return new Map(rows.map((row) => [row.receipt_id as string, row.audio_ms as number]))
  }

  async stop(): Promise<void> {
    for (const index of this.running) await this.node(index).dispose()
    await this.#sql.end({ timeout: 1 })
    this.#relay?.stop()
    await this.server.remove()
    for (const dir of [...this.#dirs, this.#uploads]) dir.remove()
  }
}
