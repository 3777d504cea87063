// Paths of an API and their methods, read from its declaration: for 405, preflights and the labels of metrics.
import { type KnownPaths, modelPath } from "#http/NotFound.ts"

/** The order of an `Allow` header. */
const order = ["GET", "POST", "DELETE"]

const byOrder = (a: string, b: string): number => order.indexOf(a) - order.indexOf(b)

/** Two parameters behind a prefix are the one path of a model whose id has a slash. */
const pathOf = (path: string): string => (path === "/v1/models/:owner/:name" ? modelPath : path)

interface Declaration {
  readonly groups: Readonly<Record<string, { readonly endpoints: Readonly<Record<string, Endpoint>> }>>
}

interface Endpoint {
  readonly method: string
  readonly path: string
}

export const knownPathsOf = ({ groups }: Declaration): KnownPaths => {
  const known = new Map<string, Set<string>>()
  for (const group of Object.values(groups)) {
    for (const { method, path } of Object.values(group.endpoints)) {
      const at = pathOf(path)
      known.set(at, (known.get(at) ?? new Set()).add(method))
    }
  }
  const paths = [...known.keys()].toSorted()
  return Object.fromEntries(paths.map((path) => [path, [...(known.get(path) ?? [])].toSorted(byOrder)]))
}
