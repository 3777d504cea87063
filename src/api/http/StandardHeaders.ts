// Headers that every answer of every role has, whatever it says. Given to each listener by its role; an answer that
// has its own value for one of them keeps it.

/** What a page of another origin may read of an answer beyond the few headers that browsers show anyway. */
const exposed = [
  "X-Request-Id",
  "X-Receipt-Id",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "Retry-After",
  "Server-Timing",
  "Idempotency-Replayed",
  "X-Service-Stream",
  "X-Service-Sample-Rate",
  "X-Available-Voices",
]

export const standardHeaders: Readonly<Record<string, string>> = {
  /** Every origin may call: the credential is in a header, never in a cookie. */
  "access-control-allow-origin": "*",
  "access-control-expose-headers": exposed.join(", "),
  /** An answer is what its content type says. */
  "x-content-type-options": "nosniff",
  /** A WebSocket's address may carry a credential, and a page's address is nobody else's business. */
  "referrer-policy": "no-referrer",
  /** No page of ours is somebody else's frame. Pages that load anything say more (see Playground). */
  "content-security-policy": "frame-ancestors 'none'",
  "x-frame-options": "DENY",
  /** Pages that isolate themselves may still load what they asked for: the API is for every origin. */
  "cross-origin-resource-policy": "cross-origin",
}
