// The properties of matcher and constraints over thousands of random grammars.
import { vi } from "vitest"
import { constraintProperties } from "./ConstraintProperties.ts"
import { matcherProperties } from "./MatcherProperties.ts"

vi.setConfig({ testTimeout: 600_000 })

matcherProperties(4_000)
constraintProperties(1_000)
