// What a JSON value of a request may be, however it is read, and the words for what is wrong with it.

/** Most bytes of a JSON body (protocol 17.1), `data:` URLs of pictures not counted. */
export const maxJsonBytes = 8_000_000

/**
 * Most commas of a body, which is about its values. Each takes memory and some time of whatever walks through them:
 * `JSON.parse` takes 170 ms for 8 MB of `0,0,0,…` and 4 ms for 100,000 of them (measured).
 */
export const maxValues = 100_000

/**
 * Lists and objects inside each other. Requests nest ten levels deep, JSON Schemas of tools some more. Values that nest
 * thousands of levels deep make whatever walks them recurse: decoding takes minutes.
 */
export const maxDepth = 128

/** Keys of one object. Listing an object of 90,000 keys held the event loop for 48 ms (measured), however it was made. */
export const maxKeys = 8_192

/** Characters of a number. A guess: a 64-bit float has at most 768 digits that matter. */
export const maxNumberChars = 1_024

export type Parsed = { readonly value: unknown } | { readonly problem: string }

export const problems = {
  invalid: "is not valid JSON",
  tooManyValues: `has more than ${maxValues} values`,
  tooManyKeys: `has an object of more than ${maxKeys} keys`,
  longNumber: `has a number of more than ${maxNumberChars} characters`,
  /** `where`: the beginning of the path. */
  tooDeep: (where: string): string =>
    `is nested more than ${maxDepth} levels deep${where === "" ? "" : `, in ${where}`}`,
} as const
