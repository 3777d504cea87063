// Mistakes in files made by others: weights, which make their model fail but not the node, and certificates.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { inCatalog, type OperatorMistake, type World, withWeights } from "./World.ts"

const demo = fileURLToPath(new URL("../../../models/llama-demo/llama-demo-Q8_0.gguf", import.meta.url))
const speech = fileURLToPath(new URL("../../../models/kokoro-demo/model.onnx", import.meta.url))

const named = (name: string, sha256?: string) => ({
  ...withWeights,
  files: { weights: { source: name, ...(sha256 === undefined ? {} : { sha256 }) } },
})

/** A catalog of one model whose weights are written first. */
const withFile = (name: string, write: (path: string) => void) => (world: World) => {
  write(join(world.dir, name))
  return inCatalog(named(name))(world)
}

export const weights: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "weights that are not there",
    make: inCatalog(named("mising.gguf")),
    line: "model cannot be loaded: my-model: weights: mising.gguf is not there",
  },
  {
    mistake: "weights whose copy was cut short",
    make: withFile("short.gguf", (path) => writeFileSync(path, readFileSync(demo).subarray(0, 100_000))),
    line: "model cannot be loaded: my-model: weights: short.gguf is cut short: it has 100000 bytes and needs 2764864",
  },
  {
    mistake: "weights with another sum",
    make: (world: World) => {
      copyFileSync(demo, join(world.dir, "other.gguf"))
      return inCatalog(named("other.gguf", "0".repeat(64)))(world)
    },
    line: `model cannot be loaded: my-model: weights: other.gguf has SHA-256 a3bc525fee2c8a69876e523cbe8568db03481c88fe2a2f1404f2587ea55da673, the catalog says ${"0".repeat(64)}`,
  },
  {
    mistake: "weights of another engine",
    make: withFile("speech.gguf", (path) => copyFileSync(speech, path)),
    line: "model cannot be loaded: my-model: weights: speech.gguf is an ONNX model, but the adapter llama-gguf reads a GGUF file here",
  },
  {
    mistake: "a pointer of Git LFS as weights",
    make: withFile("pointer.gguf", (path) =>
      writeFileSync(path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
    ),
    line: "model cannot be loaded: my-model: weights: pointer.gguf is a Git LFS pointer instead of the file, but the adapter llama-gguf reads a GGUF file here",
  },
].map((row) => ({ ...row, status: "serves" as const }))

/** The files that the settings name, in the world's folder. */
const tls =
  (files: Readonly<Record<string, string>>) =>
  ({ dir }: World) => {
    writeFileSync(join(dir, "key.pem"), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    return { env: Object.fromEntries(Object.entries(files).map(([name, file]) => [name, join(dir, file)])) }
  }

export const certificates: ReadonlyArray<Omit<OperatorMistake, "category">> = [
  {
    mistake: "a certificate without a key",
    make: tls({ EDGEWISE_TLS_CERT: "cert.pem" }),
    line: "EDGEWISE_TLS_KEY: is not set, but EDGEWISE_TLS_CERT is",
  },
  {
    mistake: "a key without a certificate",
    make: tls({ EDGEWISE_TLS_KEY: "key.pem" }),
    line: "EDGEWISE_TLS_CERT: is not set, but EDGEWISE_TLS_KEY is",
  },
  {
    mistake: "a certificate that is not there",
    make: tls({ EDGEWISE_TLS_CERT: "cert.pem", EDGEWISE_TLS_KEY: "key.pem" }),
    line: "EDGEWISE_TLS_CERT: DIR/cert.pem: no such file",
  },
  {
    mistake: "another file as certificate",
    make: tls({ EDGEWISE_TLS_CERT: "catalog.json", EDGEWISE_TLS_KEY: "key.pem" }),
    line: "EDGEWISE_TLS_CERT: DIR/catalog.json: holds no certificate in PEM format (-----BEGIN CERTIFICATE-----)",
  },
  {
    mistake: "certificate and key exchanged",
    make: tls({ EDGEWISE_TLS_CERT: "key.pem", EDGEWISE_TLS_KEY: "catalog.json" }),
    line: "EDGEWISE_TLS_CERT: DIR/key.pem: holds a private key and no certificate; are the two files exchanged?",
  },
].map((row) => ({ ...row, status: 2 as const }))
