// Settings of the node: its files, database, region, catalog and libraries.
import { fileURLToPath } from "node:url"
import { nodeRegions } from "#domain/regions/Regions.ts"
import { hasScheme, parseS3Address, s3AddressRule } from "#store/files/S3Address.ts"
import { databaseUrlRule, hidePassword, parseDatabaseUrl } from "#store/sql/DatabaseUrl.ts"
import { integer, nonEmpty, oneOf, type Setting, trueOrFalse } from "./Setting.ts"

/** The catalog that comes with the product. */
export const builtInCatalog = fileURLToPath(new URL("../../../models/catalog.json", import.meta.url))

export const nodeSettings = {
  dataDir: {
    variable: "EDGEWISE_DATA_DIR",
    value: "FOLDER",
    help: "store, keys, uploads, pulled weights",
    allowed: "a path",
    fallback: ".edgewise",
    parse: nonEmpty,
  },
  databaseUrl: {
    variable: "EDGEWISE_DATABASE_URL",
    value: "URL",
    help: "Postgres database that several nodes share; without it, SQLite in the data directory",
    allowed: databaseUrlRule,
    fallback: "",
    fallbackText: "none",
    parse: parseDatabaseUrl,
    shown: hidePassword,
  },
  databaseGraceSeconds: {
    variable: "EDGEWISE_DATABASE_GRACE_SECONDS",
    value: "SECONDS",
    help: "how long requests go on while the shared database does not answer, with keys that were read and money that is leased; 0: not at all",
    // Patroni takes up to 30 s until another server is the primary.
    fallback: 30,
    ...integer(0, 120),
  },
  uploads: {
    variable: "EDGEWISE_UPLOADS",
    value: "FOLDER|s3://BUCKET",
    help: "folder that all nodes of the database mount, or bucket of an S3 service, for the uploads of transcription jobs: any node does any job; without it each node does those that it accepted",
    allowed: `a path, or ${s3AddressRule}`,
    fallback: "",
    fallbackText: "none",
    parse: (text: string) =>
      hasScheme(text) && parseS3Address(text) === undefined ? undefined : nonEmpty(text),
    shown: hidePassword,
  },
  region: {
    variable: "EDGEWISE_REGION",
    value: "CODE",
    help: "region code of this node: local, a built-in one, or one of the regions file if that is set; `local` deploys every model of the catalog",
    allowed: `a region code; built in are ${nodeRegions.join(", ")}`,
    fallback: "local",
    // Checked against the regions file after that is read.
    parse: (text: string) => (/^[a-z0-9][a-z0-9-]{0,31}$/.test(text) ? text : undefined),
  },
  catalog: {
    variable: "EDGEWISE_CATALOG",
    value: "FILE",
    help: "model catalog file",
    allowed: "the path of a catalog file (JSON)",
    fallback: builtInCatalog,
    fallbackText: "the built-in catalog",
    parse: nonEmpty,
  },
  transport: {
    variable: "EDGEWISE_TRANSPORT",
    value: "auto|uws|node",
    help: "HTTP server: uws is uWebSockets.js, node is Node's own with ws; auto takes uws on loopback addresses and for `--trusted-proxies`, and node where other clients can connect and for TLS",
    fallback: "auto",
    ...oneOf(["auto", "uws", "node"]),
  },
  decoder: {
    variable: "EDGEWISE_DECODER",
    value: "auto|node-av|ffmpeg",
    help: "what decodes audio files: the FFmpeg of the package node-av, or this machine's ffmpeg program; auto takes node-av where it loads",
    fallback: "auto",
    ...oneOf(["auto", "node-av", "ffmpeg"]),
  },
  restart: {
    variable: "EDGEWISE_RESTART",
    value: "auto|true|false",
    help: "whether npm start and the command edgewise start the node again when it crashes; auto does unless systemd or a container runs it",
    fallback: "auto",
    ...oneOf(["auto", "true", "false"]),
  },
  openaiAliases: {
    variable: "EDGEWISE_OPENAI_ALIASES",
    help: "accept OpenAI's names of speech and transcription models and of voices, such as tts-1 and alloy",
    fallback: true,
    ...trueOrFalse,
  },
} as const satisfies Record<string, Setting<unknown>>
