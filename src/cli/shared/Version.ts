// The product's version, from the one place that states it.
import packageJson from "../../../package.json" with { type: "json" }

export const version: string = packageJson.version
