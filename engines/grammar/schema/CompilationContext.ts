// What the translation of objects and arrays reads and writes: implemented by Compiler, which calls it.

import type { Automaton, Expression } from "../Expression.ts"
import type { Json } from "../Json.ts"
import type { SchemaDocument } from "./document/SchemaDocument.ts"
import type { Notation } from "./JsonText.ts"
import type { Leaves } from "./Leaves.ts"

export interface CompilationContext {
  readonly document: SchemaDocument
  readonly leaves: Leaves
  readonly notation: Notation
  /** A reference to the rule of the values that fit all of these schemas. */
  rule(schemas: ReadonlyArray<Json>): Expression
  freshName(): string
  define(name: string, expression: Expression): void
  /** Says why the rule that is being translated may have no sentence. */
  note(path: string, detail: string): void
  /** The strings that fit all schemas. */
  strings(schemas: ReadonlyArray<Json>): Automaton
  /** The values that fit all schemas, if `enum` or `const` lists them. */
  values(schemas: ReadonlyArray<Json>): ReadonlyArray<Json> | undefined
}
