// Mistakes in the files that an operator writes: catalog, regions, geo database, and where they are.
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import {
  catalogText,
  inCatalog,
  inDataDir,
  type OperatorMistake,
  type World,
  withWeights,
  writeCatalogText,
} from "./World.ts"

const region = { code: "par-01", name: "Paris", country: "FR", latitude: 48.86, longitude: 2.35 }

const regionsFile = ({ dir }: World, regions: ReadonlyArray<object>) => {
  writeFileSync(join(dir, "regions.json"), JSON.stringify({ regions }, null, 2))
  return { env: { EDGEWISE_REGIONS: join(dir, "regions.json") } }
}

const withText = (text: string) => (world: World) => {
  writeCatalogText(world, text)
  return {}
}

export const files: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "a catalog that is not there",
    make: ({ dir }) => ({ env: { EDGEWISE_CATALOG: join(dir, "catalogue.json") } }),
    status: 2,
    line: "DIR/catalogue.json: there is no such catalog file",
  },
  {
    mistake: "a folder as catalog",
    make: ({ dir }) => ({ env: { EDGEWISE_CATALOG: dir } }),
    status: 2,
    line: "DIR: is a folder, not a catalog file",
  },
  {
    mistake: "an empty file as catalog",
    make: withText(""),
    status: 2,
    line: "DIR/catalog.json:1:1: the file is empty",
  },
  {
    mistake: "a comma behind the last entry",
    make: withText(catalogText({}).replace(/\}\s*\]/, "},\n  ]")),
    status: 2,
    line: "DIR/catalog.json:15:3: not valid JSON: a value is expected here; is there an extra comma?",
  },
  {
    mistake: "a comment in the catalog that does not end",
    make: withText(`/* my models\n${catalogText({})}`),
    status: 2,
    line: "DIR/catalog.json:1:1: not valid JSON: the end */ of this comment is missing",
  },
  {
    mistake: "a regions file that is not there",
    make: ({ dir }) => ({ env: { EDGEWISE_REGIONS: join(dir, "regions.json") } }),
    status: 2,
    line: "DIR/regions.json: there is no such regions file",
  },
  {
    mistake: "a key of a region misspelled",
    make: (world) => regionsFile(world, [{ ...region, endpont: "https://par.example.com" }]),
    status: 2,
    line: 'DIR/regions.json:9:7: regions[0]: endpont: is not a known key; did you mean "endpoint"?',
  },
  {
    mistake: "a region without an address",
    make: (world) => regionsFile(world, [region]),
    status: 2,
    line: "DIR/regions.json: par-01 has no endpoint, and EDGEWISE_EDGE_DOMAIN is not set",
  },
  {
    mistake: "a geo database that is not there",
    make: ({ dir }) => ({ env: { EDGEWISE_GEOIP_DB: join(dir, "geo.mmdb") } }),
    status: 2,
    line: "geo database DIR/geo.mmdb: there is no such file",
  },
  {
    mistake: "a geo database of another format",
    make: ({ dir }) => ({ env: { EDGEWISE_GEOIP_DB: join(dir, "catalog.json") } }),
    status: 2,
    line: "geo database DIR/catalog.json: is not a MaxMind-format file (Unknown type 130 at offset 1)",
  },
  {
    mistake: "a file as data directory",
    make: ({ dir }) => ({ env: { EDGEWISE_DATA_DIR: join(dir, "catalog.json") } }),
    status: 1,
    line: "DIR/catalog.json: a part of this path is a file, not a directory (ENOTDIR)",
  },
  {
    mistake: "a data directory where none can be made",
    make: () => ({ env: { EDGEWISE_DATA_DIR: "/proc/edgewise" } }),
    status: 1,
    line: "/proc/edgewise: this directory cannot be made (ENOENT)",
  },
  {
    mistake: "another file as development key",
    make: (world) => {
      inDataDir(world, "dev-key", "hello\n")
      return {}
    },
    status: 1,
    line: "DIR/data/dev-key: does not hold an API key; remove it",
  },
  {
    mistake: "a damaged file of signing keys",
    make: (world) => {
      inDataDir(world, "signing-keys.json", '{"keys":')
      return {}
    },
    status: 1,
    line: "DIR/data/signing-keys.json: does not hold signing keys; remove it to start with a new one",
  },
]

export const catalog: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "`contextToken` for `contextTokens`",
    make: inCatalog({ options: { contextToken: 4096 } }),
    status: 2,
    line: 'DIR/catalog.json:11:9: my-model: options.contextToken: is not a known key; did you mean "contextTokens"?',
  },
  {
    mistake: "`slot` for `slots`",
    make: inCatalog({ options: { slot: 4 } }),
    status: 2,
    line: 'DIR/catalog.json:11:9: my-model: options.slot: is not a known key; did you mean "slots"?',
  },
  {
    mistake: "`runtimes` for `runtime`",
    make: inCatalog({ runtimes: { load: "start" } }),
    status: 2,
    line: 'DIR/catalog.json:14:7: my-model: runtimes: is not a known key; did you mean "runtime"?',
  },
  {
    mistake: "zero slots",
    make: inCatalog({ options: { slots: 0 } }),
    status: 2,
    line: "DIR/catalog.json:11:18: my-model: options.slots: 0 is not allowed; allowed is a value between 1 and 100000",
  },
  {
    mistake: "a date as text",
    make: inCatalog({ created: "2026-11-01" }),
    status: 2,
    line: 'DIR/catalog.json:8:18: my-model: created: "2026-11-01" is not allowed; allowed is a number',
  },
  {
    mistake: "a price in dollars",
    make: inCatalog({ price: { inputPerMillionTokens: 0.2 } }),
    status: 2,
    line: "DIR/catalog.json:14:34: my-model: price.inputPerMillionTokens: 0.2 is not allowed; allowed is an integer",
  },
  {
    mistake: "an adapter misspelled",
    make: inCatalog({ adapter: "llama-guff" }),
    status: 2,
    line: 'DIR/catalog.json:6:18: my-model: adapter: "llama-guff" is not an adapter; did you mean "llama-gguf"?',
  },
  {
    mistake: "an adapter of another kind",
    make: inCatalog({ adapter: "fake-speech" }),
    status: 2,
    line: 'DIR/catalog.json:6:18: my-model: adapter: fake-speech runs speech models, and kind is "text"; adapters of text models are fake, llama-gguf',
  },
  {
    mistake: "an adapter of the kind that reads other files",
    make: inCatalog({
      kind: "speech",
      adapter: "chatterbox-onnx",
      files: {
        model: { source: "weights.gguf" },
        tokenizer: { source: "weights.gguf" },
        voices: { source: "voices" },
      },
    }),
    status: 2,
    line: "DIR/catalog.json:6:18: my-model: adapter: chatterbox-onnx reads other files, these are those of kokoro-onnx; adapters of speech models are chatterbox-onnx, fake-speech, kokoro-onnx, style-clone-onnx",
  },
  {
    mistake: "two models of one id",
    make: inCatalog({}, {}),
    status: 2,
    line: 'DIR/catalog.json:16:13: my-model: id: "my-model" is also the id of the model on line 4',
  },
  {
    mistake: "a catalog without models",
    make: inCatalog(),
    status: 2,
    line: "DIR/catalog.json:2:13: models: the catalog has no model",
  },
  {
    mistake: "an id with a space",
    make: inCatalog({ id: "my model" }),
    status: 2,
    line: 'DIR/catalog.json:4:13: models[0]: id: "my model" is not allowed; allowed is 1 to 128 letters, digits, dots, hyphens and underscores that begin with a letter or digit, as NAME or OWNER/NAME',
  },
  {
    mistake: "an id that is a path of the API",
    make: inCatalog({ id: "status" }),
    status: 2,
    line: 'DIR/catalog.json:4:13: status: id: "status" cannot be an id: /v1/models/status is another path of the API',
  },
  {
    mistake: "a folder as weights",
    make: (world) => {
      rmSync(join(world.dir, "weights.gguf"))
      mkdirSync(join(world.dir, "weights.gguf"))
      return inCatalog(withWeights)(world)
    },
    status: 2,
    line: 'DIR/catalog.json:11:21: my-model: files.weights.source: "weights.gguf" is a folder; name the file in it',
  },
  {
    mistake: "no file for a role that the adapter needs",
    make: inCatalog({ ...withWeights, files: {} }),
    status: 2,
    line: "DIR/catalog.json:9:16: my-model: files.weights: is missing; llama-gguf needs weights",
  },
  {
    mistake: "a model of a hub without its file",
    make: inCatalog({ ...withWeights, files: { weights: { source: "hf:Qwen/Qwen3-0.6B-GGUF" } } }),
    status: 2,
    line: 'DIR/catalog.json:11:21: my-model: files.weights.source: "hf:Qwen/Qwen3-0.6B-GGUF" is not hf:owner/repo@commit/file',
  },
  {
    mistake: "a region that does not exist",
    make: inCatalog({ regions: ["nyc-03"] }),
    status: 2,
    line: 'DIR/catalog.json:15:9: my-model: regions[0]: "nyc-03" is not a region; did you mean "nyc-01"?',
  },
]
