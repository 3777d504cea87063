// What can be seen of the running tree: one node for each supervisor, actor and worker, hung under the one that started it.
// Nodes are kept by Child.ts and read by `GET /v1/node/tree`. Reading takes a bounded copy and asks no mailbox, so an actor
// that hangs is shown like any other.
import { Context, type Scope } from "effect"

export type NodeKind = "supervisor" | "store" | "worker" | "device" | "model" | "engine" | "session" | "job"

/** What a child holds at this moment. A quantity that it cannot have is absent. */
interface Holds {
  readonly memoryBytes?: number
  readonly threads?: number
  readonly sessions?: number
  readonly requests?: number
}

/** Messages that wait, and how many may. */
interface Mailbox {
  readonly depth: number
  readonly bound: number
}

/** What its owner adds to what the tree knows by itself; read only when the tree is. */
export interface Details {
  readonly state?: () => string
  readonly mailbox?: () => Mailbox
  readonly holds?: () => Holds
}

/** A child that crashed more often than it may, as its parent's node keeps it. */
interface GaveUp {
  readonly name: string
  readonly kind: NodeKind
  /** When it did, milliseconds of the monotonic clock. */
  readonly atMs: number
  /** Its restarts inside the period that its specification allows. */
  readonly restarts: number
  /** The last crash, for operators. */
  readonly reason: string
  /** What its parent did, see ChildGivesUp. */
  readonly outcome: string
  /** Whether a child of this name runs again. */
  readonly recovered: boolean
}

/** So many children that gave up are remembered at a node: the last ones. A guess. */
const mostGaveUp = 8

export class TreeNode {
  readonly name: string
  readonly kind: NodeKind
  /** What Child.ts knows: `starting`, `running`, `restarting`, `stopping`, `gave up`. */
  state = "starting"
  /** When its present incarnation began, milliseconds of the monotonic clock. */
  startedAtMs: number
  restarts = 0
  details: Details = {}
  readonly #nodes = new Set<TreeNode>()
  readonly #givenUp = new Map<string, GaveUp>()

  constructor(name: string, kind: NodeKind, nowMs: number) {
    this.name = name
    this.kind = kind
    this.startedAtMs = nowMs
  }

  /** In the order in which they were started. */
  get children(): ReadonlySet<TreeNode> {
    return this.#nodes
  }

  /** The last ones, by name, in the order in which they gave up. */
  get gaveUp(): ReadonlyArray<GaveUp> {
    return [...this.#givenUp.values()]
  }

  childGaveUp(child: Omit<GaveUp, "recovered">): void {
    this.#givenUp.delete(child.name)
    this.#givenUp.set(child.name, { ...child, recovered: false })
    const [oldest] = this.#givenUp.keys()
    if (this.#givenUp.size > mostGaveUp && oldest !== undefined) this.#givenUp.delete(oldest)
  }

  /** A child of this name runs. */
  childRuns(name: string): void {
    const before = this.#givenUp.get(name)
    if (before !== undefined && !before.recovered) this.#givenUp.set(name, { ...before, recovered: true })
  }

  add(node: TreeNode): void {
    this.#nodes.add(node)
  }

  remove(node: TreeNode): void {
    this.#nodes.delete(node)
  }
}

/** One node as it was when it was read. */
export interface TreeReading {
  readonly name: string
  readonly kind: NodeKind
  readonly state: string
  readonly ageMs: number
  readonly restarts: number
  readonly mailbox: Mailbox | undefined
  readonly holds: Holds
  /** Children that gave up, and how long ago. */
  readonly gaveUp: ReadonlyArray<Omit<GaveUp, "atMs" | "kind"> & { readonly agoMs: number }>
  /** All children, also those left out of `children`. */
  readonly childCount: number
  readonly children: ReadonlyArray<TreeReading>
}

/** A copy of the tree under `node`, with at most `most` children of each node: those that were started first. */
export const readTree = (node: TreeNode, nowMs: number, most: number): TreeReading => {
  const { details, kind, name, restarts } = node
  const shown: Array<TreeReading> = []
  for (const child of node.children) {
    if (shown.length >= most) break
    shown.push(readTree(child, nowMs, most))
  }
  return {
    name,
    kind,
    // While it runs its owner knows more of it; otherwise its supervisor does.
    state: node.state === "running" ? (details.state?.() ?? node.state) : node.state,
    ageMs: Math.max(0, nowMs - node.startedAtMs),
    restarts,
    mailbox: details.mailbox?.(),
    holds: details.holds?.() ?? {},
    gaveUp: node.gaveUp.map(({ atMs, kind: _, ...one }) => ({ ...one, agoMs: Math.max(0, nowMs - atMs) })),
    childCount: node.children.size,
    children: shown,
  }
}

/** A part of the tree that has given up and does not run again, with the names of its parents. */
interface Lost extends GaveUp {
  readonly path: string
}

/** The parts under `node` that have given up, engines left out: their models say so. Sessions and jobs have none. */
export const lostUnder = (node: TreeNode, path = ""): ReadonlyArray<Lost> => {
  if (node.kind === "session" || node.kind === "job") return []
  const here = node.gaveUp.flatMap((one) =>
    one.recovered || one.kind === "engine" ? [] : [{ ...one, path: `${path}${one.name}` }],
  )
  return [...here, ...[...node.children].flatMap((child) => lostUnder(child, `${path}${child.name} › `))]
}

/** What a parent does when a child of it has given up. */
export interface ChildGivesUp {
  /** `goes on`: without that child. `restarts`: its incarnation crashes, with all other children. */
  readonly does: "goes on" | "restarts"
  /** What follows, in words for operators: part of a line in the log and in the tree. */
  readonly outcome: string
}

/** Where a child is started: its node hangs under `node`, and it ends with `scope` at the latest. */
export interface Parent {
  readonly node: TreeNode
  /** Undefined outside of a tree: then a child ends with the scope that it was started in. */
  readonly scope: Scope.Scope | undefined
  readonly childGivesUp?: ChildGivesUp
  /** Crashes the parent's incarnation. */
  readonly crash?: (cause: unknown) => void
}

/** The child whose incarnation runs the present fiber. Outside of a tree, in tests and scripts, children hang under none. */
export const CurrentParent = Context.Reference<Parent>("edgewise/actors/CurrentParent", {
  defaultValue: () => ({ node: new TreeNode("none", "supervisor", 0), scope: undefined }),
})
