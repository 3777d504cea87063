// Runs after `npm pack`.
import { removeMade } from "./Files.ts"

removeMade()
