// A task for agents: four calls of three local tools, and the script by which the fake engine plays the model.
import { z } from "zod"
import { script } from "../nodes/FakeNode.ts"

/** Calls that were made, in order. Emptied by each test. */
export const made: Array<string> = []

export const place = z.object({ city: z.string() })
export const lamp = z.object({ place: z.string(), on: z.boolean() })

export const tools = {
  get_time: ({ city }: z.infer<typeof place>) => {
    made.push(`time ${city}`)
    return "21:30"
  },
  get_weather: ({ city }: z.infer<typeof place>) => {
    made.push(`weather ${city}`)
    return "rain"
  },
  set_lamp: ({ on, place }: z.infer<typeof lamp>) => {
    made.push(`lamp ${place} ${on}`)
    return "done"
  },
}

export const final = "It is 21:30 and it rains in Rome; both lamps are on."

export const task = script({
  steps: [
    { calls: [{ name: "get_time", arguments: { city: "Rome" } }] },
    {
      tokens: 1,
      text: "And now the weather.",
      calls: [{ name: "get_weather", arguments: { city: "Rome" } }],
    },
    {
      calls: [
        { name: "set_lamp", arguments: { place: "kitchen", on: true } },
        { name: "set_lamp", arguments: { place: 'the "hall" — Flur', on: true } },
      ],
    },
    { tokens: 3, text: ["It is 21:30 and it ", "rains in Rome; both lamps ", "are on."] },
  ],
})

export const expected = ["time Rome", "weather Rome", "lamp kitchen true", 'lamp the "hall" — Flur true']
