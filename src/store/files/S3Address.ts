// Parses the address of a bucket for shared uploads, s3://BUCKET/PREFIX. Pure.

/** The allowed form, for error messages. */
export const s3AddressRule = "s3://BUCKET/PREFIX, with ?encryption=aws:kms or ?encryption=none"

export interface S3Address {
  readonly bucket: string
  /** Start of all keys: empty, or ends with "/". */
  readonly prefix: string
  /** Value of the header that asks the service to encrypt an object; undefined: the header is not sent. */
  readonly encryption: "AES256" | "aws:kms" | undefined
}

/** Where the service is and who asks. */
export interface S3Access {
  /** Without a path. Undefined: AWS. */
  readonly endpoint: string | undefined
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
}

/** Any text that names a scheme, so that a mistyped one is not taken for a folder. */
export const hasScheme = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text)

const encryptions = { AES256: "AES256", "aws:kms": "aws:kms", none: undefined } as const

const shape =
  /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[A-Za-z0-9._-]+)*)\/?(?:\?encryption=([A-Za-z0-9:]+))?$/

/** Undefined if the text is not such an address. */
export const parseS3Address = (text: string): S3Address | undefined => {
  const [whole, bucket = "", path = "", encryption = "AES256"] = shape.exec(text) ?? []
  // A service may read the segments `.` and `..` as a path.
  if (whole === undefined || path.length > 500 || /\/\.\.?(\/|$)/.test(path)) return undefined
  if (!Object.hasOwn(encryptions, encryption)) return undefined
  return {
    bucket,
    prefix: path === "" ? "" : `${path.slice(1)}/`,
    encryption: encryptions[encryption as keyof typeof encryptions],
  }
}
