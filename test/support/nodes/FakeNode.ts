// Deployments of the fake engine and a registry of them, for tests of the code that uses engines.
import { Layer, Logger, Schema } from "effect"
import { Device, type DeviceOptions } from "#actors/device/Device.ts"
import { NvidiaSmi } from "#actors/device/NvidiaSmi.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { RedeploymentOptions } from "#actors/model/Redeployment.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { ModelEntry } from "#domain/models/ModelEntry.ts"

const decode = Schema.decodeUnknownSync(ModelEntry)

interface FakeModel {
  readonly id?: string
  readonly options?: Readonly<Record<string, unknown>>
  readonly runtime?: Readonly<Record<string, unknown>>
  readonly price?: Readonly<Record<string, number>>
  /** Size of the weights, for which the ledger claims memory. */
  readonly sizeBytes?: number
}

export const fakeDeployment = ({
  id = "fake",
  options = {},
  price,
  runtime = {},
  sizeBytes = 0,
}: FakeModel = {}): Deployment => ({
  entry: decode({
    id,
    kind: "text",
    adapter: "fake",
    ownedBy: "test",
    created: 1,
    files: {},
    options,
    runtime,
    price: price ?? { inputPerMillionTokens: 200_000, outputPerMillionTokens: 750_000 },
  }),
  files: {},
  sizeBytes,
})

/** A registry of fake models, or of one called `fake`. */
export const fakeRegistry = (...models: readonly [FakeModel?, ...Array<FakeModel>]) =>
  ModelRegistry.layer((models.length === 0 ? [{}] : models).map((model) => fakeDeployment(model))).pipe(
    Layer.provide(Device.layer()),
    Layer.provide(Layer.merge(NvidiaSmi.none, quiet)),
  )

/** A prompt that is a script for the fake engine. */
export const script = (steps: Readonly<Record<string, unknown>>): string => `fake:${JSON.stringify(steps)}`

const quiet = Logger.layer([])

export interface FakeWorld extends RedeploymentOptions {
  /** Receives log lines; absent: they are dropped. */
  readonly log?: Layer.Layer<never>
  readonly models: ReadonlyArray<FakeModel>
  readonly device?: DeviceOptions
}

/** A registry, with its memory ledger and its memory levels. */
export const fakeWorld = ({ device, log = quiet, models, ...options }: FakeWorld) =>
  ModelRegistry.layer(
    models.map((model) => fakeDeployment(model)),
    options,
  ).pipe(Layer.provideMerge(Device.layer(device)), Layer.provide(Layer.merge(NvidiaSmi.none, log)))
