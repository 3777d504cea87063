// Headers of every answer of every role. Each role gives them to its listener; an answer that has its own value for one
// of them keeps it.

/** Headers that a page of another origin may read, beyond the few that browsers always show. */
const exposed = [
  "X-Request-Id",
  "X-Receipt-Id",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "Retry-After",
  "Location",
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
  /** Browsers must not guess another content type. */
  "x-content-type-options": "nosniff",
  /** A WebSocket's address may hold a credential, and pages must not send their address to other sites. */
  "referrer-policy": "no-referrer",
  /** No page of this product may be framed by another site. Pages that load anything have a longer policy (see Playground). */
  "content-security-policy": "frame-ancestors 'none'",
  "x-frame-options": "DENY",
  /** Pages that isolate themselves may still load answers: the API is for every origin. */
  "cross-origin-resource-policy": "cross-origin",
}
