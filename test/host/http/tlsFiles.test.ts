/**
 * What the files of TLS may hold, as an operator is told it: each fault with its setting and file, at the start and at
 * a reload.
 *
 * Through the configuration of both processes, because that is where the faults are read.
 */

import { generateKeyPairSync } from "node:crypto"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { authority, issue } from "../../../kit/data/certificates.ts"
import { judgeTls } from "../../../src/host/http/tlsFiles.ts"
import type { ConfigSourceShape } from "../../../src/ports/ConfigSource.ts"
import type { StartFault } from "../../../src/ports/StartFault.ts"
import * as Scheduler from "../../../src/scheduler/Config.ts"
import * as Ssp from "../../../src/ssp/Config.ts"

const { node, root } = authority()
const own = node(),
  other = node()
const rsa = generateKeyPairSync("rsa", { modulusLength: 512 })
const weak = issue({ common: "weak", by: root, key: rsa })
const locked = own.privateKey
  .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" })
  .toString()

const expired = node({ days: -1 })

const files: { [path: string]: string } = {
  "own.pem": own.cert,
  "own.key": own.key,
  "other.key": other.key,
  "locked.key": locked,
  "ca.pem": root.cert,
  "chain.pem": `${own.cert}${root.cert}`,
  "stranger.pem": authority().root.cert,
  text: "hello",
  empty: "",
  "broken.pem": own.cert.replace(/.{20}\n-----END/, "AAAA\n-----END"),
  "two.pem": `${root.cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
  "weak.pem": weak.cert,
  "weak.key": weak.key,
  "expired.pem": expired.cert,
  "expired.key": expired.key
}

const source = (env: { readonly [name: string]: string }, held = files): ConfigSourceShape => ({
  env,
  file: undefined,
  hostName: "h",
  judgeTls,
  readText: (path) => (held[path] === undefined ? { fault: "ENOENT" } : { text: held[path] })
})
type Env = { readonly [name: string]: string }
type Shape = Pick<Ssp.SspConfigShape, "reloadSecrets" | "tls" | "warnings">
const readers: { readonly [who: string]: (env: Env, held?: typeof files) => Effect.Effect<Shape, StartFault> } = {
  SSP: (env, held = files) => Ssp.read(source({ SVC_AUTH_SECRET: "x", ...env }, held), "u"),
  scheduler: (env, held = files) =>
    Scheduler.read(source({ SVC_AUTH_SECRET: "x", SVC_SCHEDULER_AUTH_SECRET: "y", ...env }, held), "u")
}
const named = (cert: string, key: string, ca?: string): Env => ({
  SVC_TLS_CERT_FILE: cert,
  SVC_TLS_KEY_FILE: key,
  ...(ca === undefined ? {} : { SVC_TLS_CA_FILE: ca })
})

const faulty: ReadonlyArray<readonly [what: string, env: Env, fault: RegExp]> = [
  [
    "a certificate alone",
    { SVC_TLS_CERT_FILE: "own.pem" },
    /SVC_TLS_CERT_FILE is set without its key; set SVC_TLS_KEY_FILE/
  ],
  [
    "a key alone",
    { SVC_TLS_KEY_FILE: "own.key" },
    /SVC_TLS_KEY_FILE is set without its certificate; set SVC_TLS_CERT_FILE/
  ],
  ["an authority alone", { SVC_TLS_CA_FILE: "ca.pem" }, /SVC_TLS_CA_FILE is set without a certificate/],
  [
    "a file that is not there",
    named("gone.pem", "own.key"),
    /SVC_TLS_CERT_FILE: gone\.pem cannot be read \(ENOENT\); must name a readable file that holds PEM text/
  ],
  ["an empty file", named("own.pem", "empty"), /SVC_TLS_KEY_FILE: empty is empty/],
  ["no PEM", named("text", "own.key"), /SVC_TLS_CERT_FILE: text holds no certificate/],
  [
    "a key where the certificate belongs",
    named("own.key", "own.key"),
    /SVC_TLS_CERT_FILE: own\.key holds no certificate/
  ],
  [
    "a certificate that is cut",
    named("broken.pem", "own.key"),
    /SVC_TLS_CERT_FILE: broken\.pem holds a certificate that cannot be read \(number 1\)/
  ],
  ["no key", named("own.pem", "text"), /SVC_TLS_KEY_FILE: text holds no private key/],
  [
    "a key with a passphrase",
    named("own.pem", "locked.key"),
    /SVC_TLS_KEY_FILE: locked\.key holds a key with a passphrase/
  ],
  [
    "a key of another certificate",
    named("own.pem", "other.key"),
    /SVC_TLS_KEY_FILE: other\.key holds a key that does not belong to the certificate of SVC_TLS_CERT_FILE: own\.pem/
  ],
  [
    "a key that is too short",
    named("weak.pem", "weak.key"),
    /SVC_TLS_CERT_FILE: weak\.pem and its key cannot be used: .*too small/
  ],
  ["an authority that is none", named("own.pem", "own.key", "text"), /SVC_TLS_CA_FILE: text holds no certificate/],
  [
    "an authority's second certificate that is garbage",
    named("own.pem", "own.key", "two.pem"),
    /SVC_TLS_CA_FILE: two\.pem holds a certificate that cannot be read \(number 2\)/
  ]
]

const ssps: typeof faulty = [
  [
    "a scheduler in the clear",
    { ...named("own.pem", "own.key", "ca.pem"), SCHEDULER_URL: "http://s:1" },
    /SCHEDULER_URL is http:\/\/s:1; must be an https:\/\/ address where SVC_TLS_CA_FILE is set/
  ],
  [
    "an own address in the clear",
    { ...named("own.pem", "own.key", "ca.pem"), SCHEDULER_URL: "https://s:1", ADVERTISE_ADDR: "http://me:1" },
    /ADVERTISE_ADDR is http:\/\/me:1; must be/
  ]
]

for (const [who, read] of Object.entries(readers)) {
  describe(`the TLS files of the ${who}`, () => {
    for (const [what, env, fault] of [...faulty, ...(who === "SSP" ? ssps : [])]) {
      it(`D52 ${what} is a fault that names setting and file, and shows nothing of them`, () => {
        const refused = Effect.runSync(Effect.flip(read(env)))
        expect([refused.exitCode, refused.message]).toEqual([2, expect.stringMatching(fault)])
        expect(refused.message).not.toMatch(/BEGIN (?!CERTIFICATE)|MII/)
      })
    }
    it("D52 a certificate that is over, or of another authority, is warned about", () => {
      const fine = (env: Env) => Effect.runSync(read(env))
      expect(fine(named("expired.pem", "expired.key")).warnings.join()).toMatch(
        /SVC_TLS_CERT_FILE: expired\.pem expired on/
      )
      expect(fine(named("own.pem", "own.key", "stranger.pem")).warnings.join()).toMatch(
        /own\.pem is not issued by SVC_TLS_CA_FILE/
      )
      expect(fine(named("chain.pem", "own.key", "ca.pem")).warnings.join()).not.toMatch(/expired on|is not issued/)
    })
    it("D52 a reload takes new files together, keeps the old ones where one will not do, and tells the listeners", () => {
      const held = { ...files }
      const { reloadSecrets, tls } = Effect.runSync(read(named("own.pem", "own.key", "ca.pem"), held))
      const heard: Array<string | undefined> = []
      const end = tls?.onReplaced(() => heard.push(tls.current().cert))
      expect(reloadSecrets()).toEqual([
        { what: "certificate", name: "SVC_TLS_CERT_FILE", outcome: "unchanged", warnings: [] }
      ])
      held["own.pem"] = other.cert
      expect(reloadSecrets()).toEqual([
        {
          what: "certificate",
          name: "SVC_TLS_CERT_FILE",
          outcome: { fault: expect.stringMatching(/own\.key holds a key that does not belong/) }
        }
      ])
      expect([tls?.current().cert, heard]).toEqual([own.cert.trim(), []])
      held["own.key"] = other.key
      expect(reloadSecrets()).toMatchObject([{ outcome: "changed" }])
      expect([tls?.current(), heard]).toEqual([
        { cert: other.cert.trim(), key: other.key.trim(), ca: root.cert.trim() },
        [other.cert.trim()]
      ])
      end?.()
      Object.assign(held, { "own.pem": own.cert, "own.key": own.key })
      expect([reloadSecrets().length, tls?.current().cert, heard.length]).toEqual([1, own.cert.trim(), 1])
    })
  })
}

it("D24 D52 an SSP with a certificate is reached at https://, unless its address says otherwise", () => {
  const advertised = (env: Env) =>
    Effect.runSync(Ssp.read(source({ ...named("own.pem", "own.key"), ...env }), "u")).advertisedUrl(4000)
  expect([
    advertised({ LISTEN_ADDR: ":4000" }),
    advertised({ ADVERTISE_ADDR: "me:1" }),
    advertised({ ADVERTISE_ADDR: "http://proxy:1" })
  ]).toEqual(["https://h:4000", "https://me:1", "http://proxy:1"])
})
