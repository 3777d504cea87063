// What a reply may be: expressions over Unicode text, rules that may refer to each other, and text that is free until a marker. Plain data. JSON Schemas and
// the call syntax of model families are translated to it; the matcher reads nothing else.

/** A range of code points, both ends included. Never contains surrogates. */
export type CodePoints = readonly [from: number, to: number]

/** A deterministic automaton over code points; state 0 is its start. The ranges of one state do not overlap. */
export interface Automaton {
  readonly states: ReadonlyArray<{
    readonly accepts: boolean
    readonly edges: ReadonlyArray<readonly [from: number, to: number, state: number]>
  }>
}

export type Expression =
  | { readonly kind: "text"; readonly text: string }
  /** One character out of these ranges. */
  | { readonly kind: "characters"; readonly ranges: ReadonlyArray<CodePoints> }
  | { readonly kind: "automaton"; readonly automaton: Automaton }
  | { readonly kind: "sequence"; readonly of: ReadonlyArray<Expression> }
  /** Without alternatives it matches nothing. */
  | { readonly kind: "choice"; readonly of: ReadonlyArray<Expression> }
  /** `most` undefined is unbounded. */
  | {
      readonly kind: "repeat"
      readonly of: Expression
      readonly least: number
      readonly most: number | undefined
    }
  | { readonly kind: "rule"; readonly name: string }

export interface Rules {
  readonly root: Expression
  readonly rules: ReadonlyMap<string, Expression>
}

/** A whole reply. First any text until one of `until` of the first stage, then of the second, …; the rules hold what follows. */
export interface ReplyShape {
  readonly stages: ReadonlyArray<{
    readonly until: ReadonlyArray<string>
    /** The reply may end here. */
    readonly mayEnd: boolean
  }>
  readonly rules: Rules
}
