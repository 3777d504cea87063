// The built-in region codes (protocol 15.4), and two further codes of nodes. Data only.
export const regionCodes = [
  "yto-01",
  "yul-01",
  "yul-02",
  "yvr-02",
  "nyc-01",
  "nyc-02",
  "dfw-01",
  "dfw-02",
  "sfo-01",
  "sfo-03",
  "lax-01",
  "sea-01",
  "chi-01",
  "phx-01",
  "was-01",
  "mia-01",
] as const

export type RegionCode = (typeof regionCodes)[number]

/** `local` deploys every model of the catalog; `sfo-02` is the staging node. */
export const nodeRegions: ReadonlyArray<string> = ["local", ...regionCodes, "sfo-02"]
