// Sentences written for this project: what speech requests say, and what prompts of any length are made of.

/** From five to about thirty words, with numbers, questions and abbreviations, as people write them. */
export const sentences: ReadonlyArray<string> = [
  "The train to the coast leaves at nine.",
  "Please close the door quietly behind you.",
  "Could you tell me where the nearest pharmacy is?",
  "Rain is expected in the afternoon, so take an umbrella.",
  "The recipe needs two cups of flour, a pinch of salt and three eggs.",
  "Our meeting was moved to Thursday at half past four.",
  "She found the old map in a drawer beneath a pile of letters.",
  "Every evening the harbour lights go on one after the other.",
  "Did the parcel arrive, or should I call the office again?",
  "The bridge was built in 1932 and repaired twice since then.",
  "If the kettle whistles, turn the stove off and pour the water slowly.",
  "He reads the newspaper from the last page to the first.",
  "Tickets cost twelve dollars for adults and six for children.",
  "The garden behind the library is open from May to September.",
  "I would like a table for two near the window, please.",
  "A narrow path leads through the forest to a small lake.",
  "The engine stopped twice on the hill, but it started again each time.",
  "Most of the islands have no roads, only footpaths and boats.",
  "Write your name at the top and the date at the bottom of the page.",
  "The committee agreed to publish the results before the end of the year.",
  "When the snow melts, the river rises by almost a metre within a week.",
  "My sister repairs violins in a workshop that smells of wood and varnish.",
  "The museum shows tools, clocks and instruments that sailors used two hundred years ago.",
  "Although the road was closed, a few cyclists passed the barrier and reached the village before noon.",
]

/** What a prompt asks for, before its material. */
export const questions: ReadonlyArray<string> = [
  "Summarize these notes in one paragraph.",
  "Which of these notes belong together, and why?",
  "Write a short story in which all of this happens.",
  "List the places that are named here.",
  "Rewrite these notes as a polite letter.",
  "What would you ask the person who wrote this?",
]
