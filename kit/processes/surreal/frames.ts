/**
 * The database's RPC frames, opened only as far as a pass-through needs: the entries of the outermost CBOR map as
 * bytes.
 *
 * Why bytes: what the engine answers must reach the client bit by bit; decoding and encoding again would lose what
 * JavaScript cannot tell apart (`1` and `1.0`), and the tests are about exactly that.
 */

/** Position after the data item at `at`. Indefinite lengths do not occur in this protocol. */
const skip = (bytes: Uint8Array, at: number): number => {
  const { argument, major, next } = head(bytes, at)
  if (major === 2 || major === 3) return next + argument
  if (major === 6) return skip(bytes, next)
  if (major !== 4 && major !== 5) return next
  let position = next
  for (let i = 0; i < (major === 4 ? argument : 2 * argument); i++) position = skip(bytes, position)
  return position
}

const head = (
  bytes: Uint8Array,
  at: number
): { readonly major: number; readonly argument: number; readonly next: number } => {
  const first = bytes[at]
  if (first === undefined) throw new Error("the frame ends early")
  const major = first >> 5
  const info = first & 31
  if (info < 24) return { major, argument: info, next: at + 1 }
  const size = ({ 24: 1, 25: 2, 26: 4, 27: 8 } as { readonly [info: number]: number })[info]
  if (size === undefined) throw new Error(`unexpected length code ${info}`)
  let argument = 0
  for (let i = 1; i <= size; i++) argument = argument * 256 + (bytes[at + i] ?? 0)
  return { major, argument, next: at + 1 + size }
}

const textAt = (bytes: Uint8Array, at: number): readonly [string, number] => {
  const { argument, major, next } = head(bytes, at)
  if (major !== 3) throw new Error("expected text")
  return [Buffer.from(bytes.subarray(next, next + argument)).toString("utf8"), next + argument]
}

/** The entries of the map that `bytes` are: key to the value's bytes. Undefined when it is no map. */
export const entries = (bytes: Uint8Array): Map<string, Uint8Array> | undefined => {
  const { argument, major, next } = head(bytes, 0)
  if (major !== 5) return undefined
  const found = new Map<string, Uint8Array>()
  let at = next
  for (let i = 0; i < argument; i++) {
    const [key, value] = textAt(bytes, at)
    const end = skip(bytes, value)
    found.set(key, bytes.subarray(value, end))
    at = end
  }
  return found
}

/** The text that `bytes` are; undefined when they are something else. */
export const text = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined || head(bytes, 0).major !== 3 ? undefined : textAt(bytes, 0)[0]

/** CBOR of a text. */
export const fromText = (value: string): Uint8Array => {
  const body = Buffer.from(value, "utf8")
  const size = body.length
  const length = size < 24 ? [0x60 + size] : size < 256 ? [0x78, size] : [0x79, size >> 8, size & 255]
  return Buffer.concat([Uint8Array.from(length), body])
}

/** CBOR of an object of texts, numbers and objects: what an error is made of. */
export const fromObject = (object: { readonly [key: string]: unknown }): Uint8Array =>
  join(
    Object.entries(object).map(([key, value]) => [
      key,
      typeof value === "string"
        ? fromText(value)
        : typeof value === "number"
          ? fromInt(value)
          : fromObject(value as { readonly [key: string]: unknown })
    ])
  )

const fromInt = (value: number): Uint8Array => {
  const size = value < 0 ? -1 - value : value
  return Uint8Array.from([(value < 0 ? 0x20 : 0) + 25, size >> 8, size & 255])
}

/** A map of at most 23 entries out of the bytes of its values. */
export const join = (pairs: ReadonlyArray<readonly [string, Uint8Array]>): Uint8Array =>
  Buffer.concat([Uint8Array.from([0xa0 + pairs.length]), ...pairs.flatMap(([key, value]) => [fromText(key), value])])

/** A uuid as CBOR, from its 32 hexadecimal digits. */
export const fromUuid = (hex: string): Uint8Array =>
  Buffer.concat([Uint8Array.from([0xd8, 37, 0x50]), Buffer.from(hex, "hex")])

/** The uuid that `bytes` are, as 32 hexadecimal digits; undefined for NONE and anything else. */
export const uuid = (bytes: Uint8Array | undefined): string | undefined =>
  bytes !== undefined && bytes[0] === 0xd8 && bytes[1] === 37 && bytes[2] === 0x50
    ? Buffer.from(bytes.subarray(3, 19)).toString("hex")
    : undefined

/** NONE. */
export const none: Uint8Array = Uint8Array.from([0xc6, 0xf6])
