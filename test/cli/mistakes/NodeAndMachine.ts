// Mistakes in settings, and what the machine lacks: ports, disk, memory, the right time, a database.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { inDataDir, type OperatorMistake, type World } from "./World.ts"

const env = (variables: Readonly<Record<string, string>>) => () => ({ env: variables })

export const settings: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "a setting misspelled",
    make: env({ EDGEWISE_RATE_LIMT: "0" }),
    status: 2,
    line: 'EDGEWISE_RATE_LIMT: is not a setting; did you mean "EDGEWISE_RATE_LIMIT"?',
  },
  {
    mistake: "a port that is no number",
    make: env({ EDGEWISE_PORT: "http" }),
    status: 2,
    line: 'EDGEWISE_PORT: "http" is not allowed; allowed is an integer from 0 to 65535',
  },
  {
    mistake: "a flag misspelled",
    make: () => ({ args: ["serve", "--prot", "8080"] }),
    status: 2,
    line: "Unrecognized flag: --prot in command edgewise serve; did you mean --port (see edgewise serve --help)",
  },
  {
    mistake: "a command misspelled",
    make: () => ({ args: ["sreve"] }),
    status: 2,
    line: 'Unknown subcommand "sreve" for "edgewise"; did you mean serve or prove or tree (see edgewise --help)',
  },
  {
    mistake: "a flag's value out of range",
    make: () => ({ args: ["serve", "--drain-seconds", "1e6"] }),
    status: 2,
    line: 'EDGEWISE_DRAIN_SECONDS: "1e6" is not allowed; allowed is an integer from 0 to 3600',
  },
  {
    mistake: "a name as address to bind",
    make: env({ EDGEWISE_HOST: "localhost" }),
    status: 2,
    line: 'EDGEWISE_HOST: "localhost" is not allowed; allowed is an IPv4 or IPv6 address, e.g. 127.0.0.1 or 0.0.0.0',
  },
  {
    mistake: "a role that does not exist",
    make: env({ EDGEWISE_ROLES: "edge,proxy" }),
    status: 2,
    line: 'EDGEWISE_ROLES: "edge,proxy" is not allowed; allowed is a list of edge, auth and router, separated by commas',
  },
  {
    mistake: "a region that does not exist",
    make: env({ EDGEWISE_REGION: "nyc-03" }),
    status: 2,
    line: 'EDGEWISE_REGION: "nyc-03" is not allowed; allowed is a region code: local, yto-01, yul-01, yul-02, yvr-02, nyc-01, nyc-02, dfw-01, dfw-02, sfo-01, sfo-03, lax-01, sea-01, chi-01, phx-01, was-01, mia-01, sfo-02',
  },
  {
    mistake: "a network that is none",
    make: env({ EDGEWISE_TRUSTED_PROXIES: "10.0.0.0/33" }),
    status: 2,
    line: 'EDGEWISE_TRUSTED_PROXIES: "10.0.0.0/33" is not allowed; allowed is addresses and CIDR blocks, separated by commas, e.g. 10.0.0.0/8,::1',
  },
  {
    mistake: "a telemetry protocol that is not spoken",
    make: env({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4317", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }),
    status: 2,
    line: 'OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not allowed; allowed is http/json or http/protobuf',
  },
  {
    mistake: "a hub token with a space",
    make: () => ({ args: ["models", "pull", "my-model"], env: { HF_TOKEN: "hf_ abc" } }),
    status: 2,
    line: 'HF_TOKEN: "…" is not allowed; allowed is a token of visible ASCII characters',
  },
]

/** A program of this name in the folder of the test. */
const program = (folder: string, name: string, output: string): void =>
  writeFileSync(join(folder, name), `#!/bin/sh\ncat <<'END'\n${output}\nEND\n`, { mode: 0o700 })

export const decoders: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "an ffmpeg that is not installed",
    make: ({ dir }) => ({ env: { EDGEWISE_DECODER: "ffmpeg", PATH: dir } }),
    status: 1,
    line: "EDGEWISE_DECODER=ffmpeg: no ffmpeg program was found; install it, e.g. apt-get install ffmpeg",
  },
  {
    mistake: "an ffmpeg that is too old",
    make: ({ dir }) => {
      program(
        dir,
        "ffmpeg",
        "ffmpeg version 4.4.2-0ubuntu0 Copyright (c) 2000-2021\nlibavformat    58. 76.100 / 58. 76.100",
      )
      return { env: { EDGEWISE_DECODER: "ffmpeg", PATH: `${dir}:${process.env.PATH}` } }
    },
    status: 1,
    line: "EDGEWISE_DECODER=ffmpeg: DIR/ffmpeg 4.4.2-0ubuntu0 is too old; install ffmpeg 5.1 or newer",
  },
]

const taken =
  (variable: string) =>
  ({ takenPort }: World) => ({ env: { [variable]: String(takenPort) } })

export const ports: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "the edge's port in use",
    make: taken("EDGEWISE_PORT"),
    status: 1,
    line: "cannot listen on 127.0.0.1:PORT: the port is in use",
  },
  {
    mistake: "the auth role's port in use",
    make: taken("EDGEWISE_AUTH_PORT"),
    status: 1,
    line: "cannot listen on 127.0.0.1:PORT: the port is in use",
  },
  {
    mistake: "the router's port in use",
    make: taken("EDGEWISE_ROUTER_PORT"),
    status: 1,
    line: "cannot listen on 127.0.0.1:PORT: the port is in use",
  },
  {
    mistake: "one port for two roles",
    make: env({ EDGEWISE_PORT: "8080", EDGEWISE_AUTH_PORT: "8080" }),
    status: 2,
    line: 'EDGEWISE_AUTH_PORT: "8080" is not allowed; it is the port of EDGEWISE_PORT too; each role needs its own',
  },
  {
    mistake: "the address of another machine",
    make: env({ EDGEWISE_HOST: "192.0.2.1" }),
    status: 1,
    line: "cannot listen on 192.0.2.1:0: the address does not belong to this machine",
  },
]

export const disk: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "a data directory on a disk without free space",
    make: ({ fullDisk = "" }) => ({ env: { EDGEWISE_DATA_DIR: join(fullDisk, "data") } }),
    needs: "a full disk",
    status: 1,
    line: "DIR/data: no space is left on the disk (ENOSPC)",
  },
]

/** The time that the process reads; simulates a wrong clock. */
const clock = (ms: number) => ({ NODE_OPTIONS: `--import=data:text/javascript,Date.now=()=>${ms}` })

/** A file of signing keys as a node has written it, made in the year 2090. */
const keysOfTomorrow = JSON.stringify({
  keys: [
    {
      kid: "UeSN4bUcWSvXKkmTM0yMmgcp1pK2MbBXLgVQ5ohvBBg",
      x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
      d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
      createdAtMs: 3_786_912_000_000,
      activeAtMs: 3_786_912_000_000,
    },
  ],
})

export const clocks: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "a clock that was set back, after signing keys were made",
    make: (world) => {
      inDataDir(world, "signing-keys.json", keysOfTomorrow)
      return { env: clock(1_790_000_000_000) }
    },
    status: "serves",
    line: "the system clock was set back: it says 2026-09-21T14:13:20Z, and a key in DIR/data/signing-keys.json was made at 2090-01-01T00:00:00Z",
  },
  {
    mistake: "a machine without a clock, in 1970",
    make: env(clock(600_000)),
    status: "serves",
    line: "the system clock is wrong: it says 1970-01-01T00:10:00Z, before edgewise was made",
  },
]

const sqlite = (world: World, statements: string): void => {
  mkdirSync(world.dataDir)
  const database = new DatabaseSync(join(world.dataDir, "store.sqlite"))
  database.exec(statements)
  database.close()
}

const postgres = (world: World, change: (url: URL) => void) => {
  const url = new URL(world.postgresUrl ?? "postgres://none")
  change(url)
  return { env: { EDGEWISE_DATABASE_URL: url.href } }
}

export const databases: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "another database's address",
    make: env({ EDGEWISE_DATABASE_URL: "mysql://me:secret@db/edgewise" }),
    status: 2,
    line: 'EDGEWISE_DATABASE_URL: "mysql://…@db/edgewise" is not allowed; allowed is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with ?sslmode=require for TLS; several hosts as HOST:PORT,HOST:PORT',
  },
  {
    mistake: "a database server that does not run",
    make: env({ EDGEWISE_DATABASE_URL: "postgres://me:secret@127.0.0.1:1/edgewise" }),
    status: 1,
    line: "postgres://127.0.0.1:1/edgewise: connect ECONNREFUSED 127.0.0.1:1",
  },
  {
    mistake: "a wrong database password",
    make: (world) =>
      postgres(world, (url) => {
        url.password = "wrong"
      }),
    needs: "Postgres",
    status: 1,
    line: 'postgres://127.0.0.1:PORT/postgres: password authentication failed for user "edgewise"',
  },
  {
    mistake: "a database that does not exist",
    make: (world) =>
      postgres(world, (url) => {
        url.pathname = "/nowhere"
      }),
    needs: "Postgres",
    status: 1,
    line: 'postgres://127.0.0.1:PORT/nowhere: database "nowhere" does not exist',
  },
  {
    mistake: "TLS to a database server without it",
    make: (world) =>
      postgres(world, (url) => {
        url.search = "?sslmode=require"
      }),
    needs: "Postgres",
    status: 1,
    line: "postgres://127.0.0.1:PORT/postgres: the server does not speak TLS, and the address says sslmode=require",
  },
  {
    mistake: "shared uploads without a shared database",
    make: env({ EDGEWISE_UPLOADS: "/srv/uploads" }),
    status: 2,
    line: 'EDGEWISE_UPLOADS: "/srv/uploads" is not allowed; it is for nodes that share a database, set EDGEWISE_DATABASE_URL too',
  },
  {
    mistake: "a folder of shared uploads that is not there",
    make: (world) => ({
      env: { ...postgres(world, () => {}).env, EDGEWISE_UPLOADS: join(world.dir, "uploads") },
    }),
    needs: "Postgres",
    status: 1,
    line: "DIR/uploads: there is no such folder, which EDGEWISE_UPLOADS names",
  },
  {
    mistake: "a bucket of shared uploads with a key in its address",
    make: (world) => ({
      env: { ...postgres(world, () => {}).env, EDGEWISE_UPLOADS: "s3://AKID:secret@bucket/jobs" },
    }),
    needs: "Postgres",
    status: 2,
    line: 'EDGEWISE_UPLOADS: "s3://…@bucket/jobs" is not allowed; allowed is a path, or s3://BUCKET/PREFIX, with ?encryption=aws:kms or ?encryption=none',
  },
  {
    mistake: "a bucket of shared uploads without a key",
    make: (world) => ({
      env: { ...postgres(world, () => {}).env, EDGEWISE_UPLOADS: "s3://bucket/jobs" },
    }),
    needs: "Postgres",
    status: 2,
    line: 'AWS_ACCESS_KEY_ID: "" is not allowed; EDGEWISE_UPLOADS names a bucket, which needs it: visible ASCII characters',
  },
  {
    mistake: "another file as database",
    make: (world) => {
      inDataDir(world, "store.sqlite", "id,name\n1,acme\n")
      return {}
    },
    status: 1,
    line: "DIR/data/store.sqlite: file is not a database",
  },
  {
    mistake: "a folder as database",
    make: (world) => {
      mkdirSync(join(world.dataDir, "store.sqlite"), { recursive: true })
      return {}
    },
    status: 1,
    line: "DIR/data: store.sqlite is a folder (EISDIR)",
  },
  {
    mistake: "the database of a later version",
    make: (world) => {
      sqlite(
        world,
        "CREATE TABLE migrations (migration_id INTEGER PRIMARY KEY, created_at TEXT, name TEXT); INSERT INTO migrations VALUES (99, '2030-01-01', 'later')",
      )
      return {}
    },
    status: 1,
    line: "DIR/data/store.sqlite: was changed by a later version of edgewise (schema 99); start that one, or use another database",
  },
]

export const memory: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "a memory budget that the node fills without any model",
    make: env({ EDGEWISE_MEMORY_MB: "10" }),
    status: "serves",
    line: "EDGEWISE_MEMORY_MB: 10 MB is less than this process has without any model; no model can be loaded",
  },
]
