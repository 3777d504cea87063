// Stands for the API key in generated inputs. It is replaced after the mutations, so that the same seed makes the same input for
// every key. Pure.

export const keyPlaceholder = "svc_FUZZFUZZFUZZFUZZ"

/** All places that still hold the whole placeholder get the key. */
export const withKey = (bytes: Buffer, key: string): Buffer =>
  bytes.includes(keyPlaceholder)
    ? Buffer.from(bytes.toString("latin1").replaceAll(keyPlaceholder, key), "latin1")
    : bytes
