// Deployments of the fake engine, and a registry over them, for tests of what stands above an engine.
import { Layer, Schema } from "effect"
import { Device } from "#actors/Device.ts"
import { type Deployment, ModelRegistry } from "#actors/ModelRegistry.ts"
import { ModelEntry } from "#domain/Model.ts"

const decode = Schema.decodeUnknownSync(ModelEntry)

export interface FakeModel {
  readonly id?: string
  readonly options?: Readonly<Record<string, unknown>>
  readonly runtime?: Readonly<Record<string, unknown>>
  readonly price?: Readonly<Record<string, number>>
}

export const fakeDeployment = ({
  id = "fake",
  options = {},
  price,
  runtime = {},
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
  sizeBytes: 0,
})

/** A registry of fake models, or of one called `fake`. */
export const fakeRegistry = (...models: readonly [FakeModel?, ...Array<FakeModel>]) =>
  ModelRegistry.layer((models.length === 0 ? [{}] : models).map((model) => fakeDeployment(model))).pipe(
    Layer.provide(Device.layer()),
  )

/** A prompt that is a script for the fake engine. */
export const script = (steps: Readonly<Record<string, unknown>>): string => `fake:${JSON.stringify(steps)}`
