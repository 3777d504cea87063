// Nodes as separate processes on one Postgres database with shared uploads, for tests that kill and freeze them.
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import postgres from "postgres"
import { Accounts } from "#store/accounts/Accounts.ts"
import { postgresStoreLayer } from "#store/Store.ts"
import { type PostgresServer, startPostgres } from "../servers/PostgresServer.ts"
import { type NodeProcess, startProcess } from "./NodeProcess.ts"
import type { TestModel } from "./TestCatalog.ts"
import { temporaryDir } from "./TestNode.ts"

interface JobState {
  readonly id: string
  readonly status: string
  readonly node_id: string
  readonly attempt: number
}

export class Region {
  readonly server: PostgresServer
  readonly key: string
  readonly orgId: string
  /** Connections of the test itself. */
  readonly sql: ReturnType<typeof postgres>
  readonly #url: string
  readonly #models: ReadonlyArray<TestModel>
  readonly #env: Readonly<Record<string, string>>
  readonly #uploads = temporaryDir()
  readonly #dirs: ReadonlyArray<ReturnType<typeof temporaryDir>>
  readonly #nodes: Array<NodeProcess | undefined> = []

  private constructor(
    server: PostgresServer,
    url: string,
    account: { readonly key: string; readonly orgId: string },
    options: {
      readonly models: ReadonlyArray<TestModel>
      readonly nodes: number
      readonly env: Readonly<Record<string, string>>
    },
  ) {
    this.server = server
    this.#url = url
    this.key = account.key
    this.orgId = account.orgId
    this.#models = options.models
    this.#env = options.env
    this.#dirs = Array.from({ length: options.nodes }, () => temporaryDir())
    const { pathname, searchParams } = new URL(url)
    this.sql = postgres(url.split("?")[0] ?? "", {
      max: 2,
      onnotice: () => {},
      database: pathname.slice(1),
      connection: { search_path: searchParams.get("search_path") ?? "public" },
    })
  }

  static async start(options: {
    readonly models: ReadonlyArray<TestModel>
    readonly nodes: number
    readonly env?: Readonly<Record<string, string>>
  }): Promise<Region> {
    const server = await startPostgres()
    const url = await server.freshUrl()
    const account = await Effect.runPromise(
      Effect.provide(
        Effect.gen(function* () {
          const accounts = yield* Accounts
          const { id } = yield* accounts.createOrg({ name: "acme", paymentMethod: true })
          const { apiKey } = yield* accounts.createKey({ org: "acme" })
          return { key: apiKey, orgId: id }
        }),
        Layer.fresh(postgresStoreLayer(url)),
      ),
    )
    const region = new Region(server, url, account, { env: {}, ...options })
    for (let index = 0; index < options.nodes; index++) await region.startNode(index)
    return region
  }

  /** Starts a node on its own directory, also after it was killed. */
  async startNode(index: number): Promise<void> {
    this.#nodes[index] = await this.#startOn(this.#dirs[index]!.path)
  }

  /** Starts a node on a copy of another's directory, which removes the copy. It must refuse. */
  async startCopy(dataDir: string): Promise<void> {
    try {
      await (await this.#startOn(dataDir)).dispose()
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  }

  #startOn(dataDir: string): Promise<NodeProcess> {
    return startProcess({
      models: this.#models,
      env: {
        EDGEWISE_DATA_DIR: dataDir,
        EDGEWISE_DATABASE_URL: this.#url,
        EDGEWISE_UPLOADS: this.#uploads.path,
        EDGEWISE_ROLES: "edge",
        EDGEWISE_LOG_LEVEL: "error",
        ...this.#env,
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

  async jobs(): Promise<ReadonlyArray<JobState>> {
    const rows = await this.sql`SELECT id, status, node_id, attempt::int AS attempt FROM transcription_jobs`
    return rows as unknown as ReadonlyArray<JobState>
  }

  /** Receipts of jobs: id → milliseconds of audio. */
  async receipts(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.sql`
      SELECT receipt_id, audio_ms::int AS audio_ms FROM usage_ledger WHERE kind = 'transcription'`
    return new Map(rows.map((row) => [row.receipt_id as string, row.audio_ms as number]))
  }

  async stop(): Promise<void> {
    for (const index of this.running) await this.node(index).dispose()
    await this.sql.end({ timeout: 1 })
    await this.server.remove()
    for (const dir of [...this.#dirs, this.#uploads]) dir.remove()
  }
}
