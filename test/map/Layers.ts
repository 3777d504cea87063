// The layers of the product, from what depends on nothing to the program: the folders of each, and the layers that their
// files may import. ImportRule.test.ts holds the sources to it, and `npm run map` draws the picture in docs/architecture.md.

export interface Layer {
  readonly name: string
  /** Each with the folders below it. */
  readonly folders: ReadonlyArray<string>
  /** Layers that come before this one. */
  readonly imports: ReadonlyArray<string>
}

export const layers: ReadonlyArray<Layer> = [
  { name: "domain", folders: ["src/domain"], imports: [] },
  {
    name: "files of callers",
    folders: ["src/audio", "src/calls", "src/confine", "src/fetch", "src/pictures"],
    imports: ["domain"],
  },
  { name: "grammar", folders: ["engines/grammar"], imports: [] },
  { name: "engines", folders: ["engines"], imports: ["domain", "grammar"] },
  { name: "actors", folders: ["actors"], imports: ["domain", "files of callers", "engines"] },
  { name: "store", folders: ["src/store"], imports: ["domain", "actors"] },
  { name: "http", folders: ["src/http"], imports: ["domain", "store"] },
  {
    name: "settings",
    folders: ["src/config", "src/telemetry", "src/weights"],
    imports: ["domain", "engines", "store", "http"],
  },
  {
    name: "services",
    folders: ["src/services"],
    imports: ["domain", "files of callers", "engines", "actors", "store", "http"],
  },
  { name: "transport", folders: ["src/transport"], imports: ["domain", "http"] },
  {
    name: "api",
    folders: ["src/api"],
    imports: ["domain", "files of callers", "engines", "actors", "store", "http", "settings", "services"],
  },
  { name: "measuring", folders: ["bench/harness"], imports: ["domain", "files of callers"] },
  {
    name: "program",
    folders: ["src/cli", "src"],
    imports: [
      "domain",
      "files of callers",
      "engines",
      "actors",
      "store",
      "http",
      "settings",
      "services",
      "transport",
      "api",
      "measuring",
    ],
  },
  { name: "voice in a browser", folders: ["src/web/voice"], imports: [] },
  { name: "playground", folders: ["src/web"], imports: ["voice in a browser"] },
]

/** The layer that names the folder, or the nearest folder above it. */
export const layerOf = (folder: string): Layer | undefined => {
  for (let at = folder; at !== "."; at = at.includes("/") ? at.slice(0, at.lastIndexOf("/")) : ".") {
    const found = layers.find(({ folders }) => folders.includes(at))
    if (found !== undefined) return found
  }
  return undefined
}
