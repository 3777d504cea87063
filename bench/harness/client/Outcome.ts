// What became of one request.
import type { FigureName } from "../figures/Figures.ts"
import type { WordErrors } from "../figures/WordErrors.ts"
import type { FailureKey } from "./Failures.ts"

/** Figures of one request, by name, in their units. */
type FigureValues = Partial<Record<FigureName, number>>

/** Figures with many values for a request. */
type PooledValues = Partial<Record<FigureName, ReadonlyArray<number>>>

export interface Measured {
  readonly figures: FigureValues
  readonly pooled?: PooledValues
  readonly words?: WordErrors
}

export interface Outcome {
  readonly kind: string
  readonly measured?: Measured
  readonly failure?: { readonly key: FailureKey; readonly detail: string }
}
