// The root of the node's supervision tree, and how a layer becomes a part of it: the layer is built inside of a child of the
// root, so whatever actors and workers it starts hang under that child and end with it.
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { type ChildTerms, startChild } from "./Child.ts"
import { CurrentParent, TreeNode } from "./TreeNode.ts"

export class NodeTree extends Context.Service<NodeTree, { readonly root: TreeNode }>()(
  "edgewise/actors/NodeTree",
) {
  /** One tree for all roles of a process: a layer is built once as long as it is the same. */
  static readonly layer: Layer.Layer<NodeTree> = Layer.effect(
    NodeTree,
    Effect.map(monotonicMs, (nowMs) => {
      const root = new TreeNode("node", "supervisor", nowMs)
      root.state = "running"
      return { root }
    }),
  )
}

/**
 * A layer as a child of the root: built when its dependants need it, stopped after them. A layer that cannot be built fails as it
 * would by itself.
 */
export const part = <A, E, R>(
  name: string,
  terms: ChildTerms,
  layer: Layer.Layer<A, E, R>,
): Layer.Layer<A, E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { root } = yield* NodeTree
      const built = Deferred.makeUnsafe<Context.Context<A>, E>()
      yield* startChild({
        ...terms,
        name,
        run: (self) =>
          Effect.gen(function* () {
            const exit = yield* Effect.exit(Layer.build(layer))
            if (Exit.isSuccess(exit)) self.ready()
            Deferred.doneUnsafe(built, exit)
            return yield* Exit.isSuccess(exit) ? Effect.never : exit
          }),
        onEnd: () => Deferred.interrupt(built),
      }).pipe(Effect.provideService(CurrentParent, { node: root, scope: undefined }))
      return yield* Deferred.await(built)
    }),
  ).pipe(Layer.provide(NodeTree.layer))
