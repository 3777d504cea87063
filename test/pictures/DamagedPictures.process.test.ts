import { it } from "vitest"
import { expectNoCrash } from "./DamagedPictures.ts"

it("300 damaged pictures crash no decoder", () => expectNoCrash(300), 120_000)
