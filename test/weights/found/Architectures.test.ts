// The architectures and quantisations that edgewise names are those of the installed llama.cpp.
import * as library from "node-llama-cpp"
import { expect, it } from "vitest"
import {
  embeddingArchitectures,
  otherArchitectures,
  quantisationOf,
  textArchitectures,
} from "#weights/found/Architectures.ts"

/** Enumerations that exist at run time, too, although the package declares them for the compiler only. */
const { GgufArchitectureType, GgufFileType } = library as unknown as {
  readonly GgufArchitectureType: Readonly<Record<string, string>>
  readonly GgufFileType: Readonly<Record<string, number>>
}

it("knows every architecture and quantisation that the installed llama.cpp reads", () => {
  const known = [...textArchitectures, ...embeddingArchitectures, ...Object.keys(otherArchitectures)]
  const theirs = Object.values(GgufArchitectureType).filter((name) => name !== "(unknown)")
  expect(known.toSorted()).toEqual(theirs.toSorted())
  for (const name of ["Q8_0", "Q4_K_M", "F16", "BF16", "IQ4_XS"])
    expect(quantisationOf(GgufFileType[`MOSTLY_${name}`])).toBe(name)
})
