// Requests with a credential that a node may refuse by the address they come from.

export type Headers = Readonly<Record<string, string>>

/** What a proxy on this machine adds. */
export const throughProxy: Headers = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" }
export const invalidKey = [401, '{"detail":"Invalid API key"}'] as const

/** The answer of the edge at `base`; without its text where it is 200. */
export const list = async (base: string, credential: string, headers: Headers = {}) => {
  const response = await fetch(`${base}/v1/models`, {
    headers: { ...headers, authorization: `Bearer ${credential}` },
  })
  return [response.status, response.ok ? "" : await response.text()] as const
}

/** The answer of the session exchange at `base`. */
export const exchange = async (base: string, credential: string, headers: Headers = {}) => {
  const response = await fetch(`${base}/v1/auth/session`, {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${credential}` },
  })
  const text = await response.text()
  return {
    status: response.status,
    text,
    token: (JSON.parse(text) as { session_token?: string }).session_token ?? "",
  }
}
