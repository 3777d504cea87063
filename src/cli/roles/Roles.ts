// The roles of one process, over one store and one drain.
import { Effect, Layer } from "effect"
import { Drain } from "#actors/Drain.ts"
import { Redeployment } from "#actors/model/Redeployment.ts"
import { CatalogReload } from "#api/operations/CatalogReload.ts"
import type { Config } from "#config/Settings.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { CurrentNodeMeters, type NodeMeters } from "#http/NodeMeters.ts"
import { answerFailures } from "#services/AnswerFailures.ts"
import { Reload } from "../shared/Reload.ts"
import { authRole } from "./AuthRole.ts"
import { firstCredential } from "./FirstCredential.ts"
import { type NodeStore, nodeLayer, nodeMeters, nodeStore } from "./NodeLayer.ts"
import { routerRole } from "./RouterRole.ts"
import { announce, Started } from "./Started.ts"
import { watchAddedModels } from "./WatchAddedModels.ts"

/** Reloads the catalog. A wrong catalog is logged in one line and changes nothing. */
const reloadLogged = ({ reload }: CatalogReload["Service"], cause: string): Effect.Effect<void> =>
  Effect.catch(reload, (error) =>
    Effect.logWarning(`${cause}: the catalog was not applied`).pipe(
      Effect.annotateLogs({ why: error._tag === "Draining" ? "the node is draining" : error.message }),
    ),
  )

const edgeRole = (
  config: Config,
  deployed: ReadonlyArray<Deployment>,
  store: NodeStore,
  meters: NodeMeters,
) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* announce("edge")
      const started = yield* Started
      started.credential = yield* firstCredential(config)
      started.loads = (yield* Redeployment).loads
      const { onReload } = yield* Reload
      const catalog = yield* CatalogReload
      yield* onReload("the catalog", reloadLogged(catalog, "SIGHUP"))
      yield* watchAddedModels(config, reloadLogged(catalog, "models were added or removed"))
    }),
  ).pipe(Layer.provide(nodeLayer(config, deployed, {}, store, meters)))

/** Every role of the settings, listening as soon as the layer is built. Other roles cost nothing. */
export const rolesLayer = (
  config: Config,
  deployed: ReadonlyArray<Deployment>,
  meters: NodeMeters = nodeMeters(),
) => {
  const has = (role: Config["roles"][number]): boolean => config.roles.includes(role)
  const store = nodeStore(config)
  return Layer.mergeAll(
    has("edge") ? edgeRole(config, deployed, store, meters) : Layer.empty,
    has("auth") ? authRole(config, store, meters) : Layer.empty,
    has("router") ? routerRole(config, meters) : Layer.empty,
    // An edge observes the responses of all listeners of its process itself, because it knows the models.
    has("edge") ? Layer.empty : Layer.provide(answerFailures, Layer.succeed(CurrentNodeMeters, meters)),
  ).pipe(Layer.provideMerge(Layer.mergeAll(Drain.layer, Reload.layer, Started.layer)))
}
