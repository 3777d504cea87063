// Two nodes on one Postgres database, each with its own data directory, for tests of shared state.
import { type Context, Effect, Exit, Layer, Scope } from "effect"
import type { SqlClient } from "effect/sql"
import type { ModelUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { postgresStoreLayer, type Store } from "#store/Store.ts"
import { type PostgresServer, sharedPostgres, startPostgres } from "../servers/PostgresServer.ts"
import { type Relay, startRelay } from "../servers/Relay.ts"
import { script } from "./FakeNode.ts"
import type { TestModel } from "./TestCatalog.ts"
import { startNode, type TestNode, type TestNodeOptions, temporaryDir, untilLoaded } from "./TestNode.ts"

export interface NewOrg {
  readonly org: string
  readonly orgId: string
  readonly key: string
  readonly keyId: string
}

interface SharedOptions extends Pick<TestNodeOptions, "beatMs" | "leaseTickMs" | "uploadRetryMs"> {
  /** Uploads lie in a folder that both nodes have, or in this bucket. */
  readonly sharedUploads?: boolean | string
  /** A database server of their own, which the test may kill. */
  readonly ownServer?: boolean
  /** Connections to the database go through a relay that can hold back all bytes. */
  readonly relayed?: boolean
  /** How long they go on without the database. Absent: the default. */
  readonly graceSeconds?: number
}

export class SharedNodes {
  readonly #server: PostgresServer | undefined
  readonly #relay: Relay | undefined
  readonly databaseUrl: string
  readonly #models: ReadonlyArray<TestModel>
  readonly #options: SharedOptions
  readonly #uploads = temporaryDir()
  readonly #dirs = [temporaryDir(), temporaryDir()] as const
  readonly #nodes: Array<TestNode> = []
  readonly #scope = Scope.makeUnsafe()
  #commands: Promise<Context.Context<Store | SqlClient.SqlClient>> | undefined
  #orgs = 0

  private constructor(
    server: PostgresServer | undefined,
    relay: Relay | undefined,
    databaseUrl: string,
    models: ReadonlyArray<TestModel>,
    options: SharedOptions,
  ) {
    this.#server = server
    this.#relay = relay
    this.databaseUrl = databaseUrl
    this.#models = models
    this.#options = options
  }

  static async start(models: ReadonlyArray<TestModel>, options: SharedOptions = {}): Promise<SharedNodes> {
    const own = options.ownServer === true ? await startPostgres() : undefined
    const server = own ?? (await sharedPostgres())
    const relay = options.relayed === true ? await startRelay(server.port) : undefined
    const direct = await server.freshUrl()
    const url = relay === undefined ? direct : direct.replace(`:${server.port}/`, `:${relay.port}/`)
    const shared = new SharedNodes(own, relay, url, models, options)
    await Promise.all([shared.startNode(0), shared.startNode(1)])
    return shared
  }

  /** The database server, where it is their own. */
  get server(): PostgresServer {
    return this.#server!
  }

  /** Between the nodes and the database, where they are `relayed`. */
  get relay(): Relay {
    return this.#relay!
  }

  get one(): TestNode {
    return this.#nodes[0]!
  }

  get two(): TestNode {
    return this.#nodes[1]!
  }

  dataDir(index: 0 | 1): string {
    return this.#dirs[index].path
  }

  /** The folder of shared uploads. */
  get uploads(): string {
    return this.#uploads.path
  }

  /** Starts a node on its own directory, also for the second time. */
  async startNode(index: 0 | 1): Promise<void> {
    const { beatMs, graceSeconds, leaseTickMs, sharedUploads = false, uploadRetryMs } = this.#options
    const settings = {
      databaseUrl: this.databaseUrl,
      ...(graceSeconds === undefined ? {} : { databaseGraceSeconds: String(graceSeconds) }),
      ...(sharedUploads === false ? {} : { uploads: sharedUploads === true ? this.uploads : sharedUploads }),
    }
    const node = await startNode({
      models: this.#models,
      settings,
      dataDir: this.dataDir(index),
      ...(beatMs === undefined ? {} : { beatMs }),
      ...(leaseTickMs === undefined ? {} : { leaseTickMs }),
      ...(uploadRetryMs === undefined ? {} : { uploadRetryMs }),
    })
    this.#nodes[index] = node
    await untilLoaded(node, ...this.#models.map(({ id }) => id))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()))
    await Effect.runPromise(Scope.close(this.#scope, Exit.void))
    this.#relay?.stop()
    await this.#server?.remove()
    for (const dir of [...this.#dirs, this.#uploads]) dir.remove()
  }

  /** Reads and changes the store without either node, as the command line does, with connections that are kept. */
  async beside<A, E>(effect: Effect.Effect<A, E, Store | SqlClient.SqlClient>): Promise<A> {
    this.#commands ??= Effect.runPromise(
      Layer.buildWithScope(postgresStoreLayer(this.databaseUrl), this.#scope),
    )
    return Effect.runPromise(Effect.provideContext(effect, await this.#commands))
  }

  /** An organization with these credits, or with a payment method if absent. */
  newOrg(creditsMicroDollars?: number): Promise<NewOrg> {
    const name = `org${++this.#orgs}`
    const org =
      creditsMicroDollars === undefined ? { name, paymentMethod: true } : { name, creditsMicroDollars }
    return this.beside(
      Effect.gen(function* () {
        const accounts = yield* Accounts
        const { id } = yield* accounts.createOrg(org)
        const { apiKey, keyId } = yield* accounts.createKey({ org: name })
        return { org: name, orgId: id, key: apiKey, keyId }
      }),
    )
  }

  credits(org: string): Promise<number> {
    return this.beside(
      Effect.flatMap(Accounts, (accounts) =>
        Effect.map(accounts.showOrg(org), ({ creditsMicroDollars }) => creditsMicroDollars),
      ),
    )
  }

  /** The receipts, after all that are queued at the nodes have been written. */
  async usage(orgId: string): Promise<ReadonlyArray<ModelUsage>> {
    const flush = Effect.flatMap(UsageLedger, (ledger) => ledger.flush)
    await Promise.all(this.#nodes.map((node) => node.run(flush)))
    return this.beside(Effect.flatMap(UsageLedger, (ledger) => ledger.usage(orgId, 0)))
  }
}

/** A completion of the fake model. */
export const complete = (
  node: TestNode,
  key: string,
  steps: Readonly<Record<string, unknown>> = { tokens: 4 },
  headers: Readonly<Record<string, string>> = {},
  extra: object = {},
): Promise<Response> =>
  node.fetch("/v1/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "fake", prompt: script(steps), max_tokens: 1000, ...extra }),
  })
