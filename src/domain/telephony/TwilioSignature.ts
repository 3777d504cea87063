// The signature of Twilio's requests: HMAC-SHA1 of the address as it stands in the TwiML, with the account's auth token. Pure.
import { createHmac, timingSafeEqual } from "node:crypto"

export const twilioSignature = (token: string, address: string): string =>
  createHmac("sha1", token).update(address).digest("base64")

const isEqual = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/**
 * Whether a handshake is signed. Twilio signs the address that it was given; the node knows the host by the `Host` header, and neither the scheme
 * that a proxy has taken off nor a slash at the end.
 * @param target path and query of the request
 */
export const isSigned = (token: string, host: string, target: string, signature: string): boolean =>
  ["wss", "https"].some((scheme) =>
    [target, `${target}/`].some((at) =>
      isEqual(twilioSignature(token, `${scheme}://${host}${at}`), signature),
    ),
  )
