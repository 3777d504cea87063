import { it } from "vitest"
import { expectNoCrash } from "./DamagedPictures.ts"

it("5,000 damaged pictures crash no decoder", () => expectNoCrash(5_000), 1_200_000)
