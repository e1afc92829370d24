/**
 * Certificates for a test, made in the test: an authority, and what it issues for names and addresses.
 *
 * Written as DER by hand, because Node makes keys and signs but makes no certificates, and `openssl` is not everywhere.
 * No key outlives the test that made it.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"
import { isIP } from "node:net"

const tagged = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(parts)
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}
const sequence = (...parts: ReadonlyArray<Uint8Array>): Buffer => tagged(0x30, ...parts)
const oid = (hex: string): Buffer => tagged(0x06, Buffer.from(hex, "hex"))
const text = (value: string): Buffer => tagged(0x0c, Buffer.from(value))
const time = (at: Date): Buffer => tagged(0x18, Buffer.from(`${at.toISOString().replace(/[-:T]/g, "").slice(0, 14)}Z`))
const bits = (value: Uint8Array): Buffer => tagged(0x03, Buffer.from([0]), value)
const name = (common: string): Buffer => sequence(tagged(0x31, sequence(oid("550403"), text(common))))
const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"))
const extension = (id: string, value: Uint8Array, critical = false): Buffer =>
  sequence(oid(id), ...(critical ? [Buffer.from([1, 1, 255])] : []), tagged(0x04, value))

const alternative = (host: string): Buffer => {
  if (isIP(host) === 4) return tagged(0x87, Buffer.from(host.split(".").map(Number)))
  return tagged(0x82, Buffer.from(host))
}

export interface Issued {
  /** PEM texts. */
  readonly cert: string
  readonly key: string
  readonly common: string
  readonly privateKey: KeyObject
}

export interface Wanted {
  readonly common?: string
  /** Names and IPv4 addresses it is for. */
  readonly hosts?: ReadonlyArray<string>
  /** The issuer; itself when absent, as an authority does. */
  readonly by?: Issued
  /** Days from now; negative: it has expired. */
  readonly days?: number
  readonly key?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
}

export const issue = ({ by, common = "test", days = 2, hosts = [], key }: Wanted = {}): Issued => {
  const { privateKey, publicKey } = key ?? generateKeyPairSync("ec", { namedCurve: "P-256" })
  const spki = publicKey.export({ type: "spki", format: "der" })
  const extensions = [
    ...(by === undefined ? [extension("551d13", sequence(Buffer.from([1, 1, 255])), true)] : []),
    ...(hosts.length === 0 ? [] : [extension("551d11", sequence(...hosts.map(alternative)))]),
    extension("551d0e", tagged(0x04, createHash("sha1").update(spki).digest()))
  ]
  const now = Date.now(),
    day = 86_400_000
  const body = sequence(
    tagged(0xa0, Buffer.from([2, 1, 2])),
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    name(by?.common ?? common),
    sequence(time(new Date(now - 10 * day)), time(new Date(now + days * day))),
    name(common),
    spki,
    tagged(0xa3, sequence(...extensions))
  )
  const whole = sequence(body, ecdsaWithSha256, bits(sign("sha256", body, by?.privateKey ?? privateKey)))
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? []
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    common,
    privateKey
  }
}

/** Of a cluster on this machine: all nodes at 127.0.0.1 and `localhost`. */
export const authority = (common = "authority") => {
  const root = issue({ common })
  return {
    root,
    node: (wanted: Wanted = {}): Issued =>
      issue({ common: "node", hosts: ["127.0.0.1", "localhost"], by: root, ...wanted })
  }
}
