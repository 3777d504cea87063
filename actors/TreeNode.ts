// What can be seen of the running tree: one node for each supervisor, actor and worker, hung under the one that started it.
// Nodes are kept by Child.ts and read by `GET /v1/node/tree`. Reading takes a bounded copy and asks no mailbox, so an actor
// that hangs is shown like any other.
import { Context, type Scope } from "effect"

export type NodeKind = "supervisor" | "store" | "worker" | "device" | "model" | "engine" | "session" | "job"

/** What a child holds at this moment. A quantity that it cannot have is absent. */
export interface Holds {
  readonly memoryBytes?: number
  readonly threads?: number
  readonly sessions?: number
  readonly requests?: number
}

/** Messages that wait, and how many may. */
export interface Mailbox {
  readonly depth: number
  readonly bound: number
}

/** What its owner adds to what the tree knows by itself; read only when the tree is. */
export interface Details {
  readonly state?: () => string
  readonly mailbox?: () => Mailbox
  readonly holds?: () => Holds
}

export class TreeNode {
  readonly name: string
  readonly kind: NodeKind
  /** What Child.ts knows: `starting`, `running`, `restarting`, `stopping`, `gave up`. */
  state = "starting"
  /** When its present incarnation began, milliseconds of the monotonic clock. */
  startedAtMs: number
  restarts = 0
  details: Details = {}
  private readonly nodes = new Set<TreeNode>()

  constructor(name: string, kind: NodeKind, nowMs: number) {
    this.name = name
    this.kind = kind
    this.startedAtMs = nowMs
  }

  /** In the order in which they were started. */
  get children(): ReadonlySet<TreeNode> {
    return this.nodes
  }

  add(node: TreeNode): void {
    this.nodes.add(node)
  }

  remove(node: TreeNode): void {
    this.nodes.delete(node)
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
    childCount: node.children.size,
    children: shown,
  }
}

/** Where a child is started: its node hangs under `node`, and it ends with `scope` at the latest. */
export interface Parent {
  readonly node: TreeNode
  /** Undefined outside of a tree: then a child ends with the scope that it was started in. */
  readonly scope: Scope.Scope | undefined
}

/** The child whose incarnation runs the present fiber. Outside of a tree, in tests and scripts, children hang under none. */
export const CurrentParent = Context.Reference<Parent>("edgewise/actors/CurrentParent", {
  defaultValue: () => ({ node: new TreeNode("none", "supervisor", 0), scope: undefined }),
})
