/**
 * Secrets by name, each for some scopes, and the lines that declare them (D15).
 *
 * One line per secret, `<name> <scope>[,<scope>...] <secret>`; a line that is empty or begins with `#` says nothing.
 * The secret may be given as `sha256:<hex>` of itself, so that a reader of the file cannot use it. Faults never show a
 * field that may be a secret: an operator may have swapped two fields.
 */
import { sha256 } from "@noble/hashes/sha2.js"
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js"
import { closest, type Knob, nodeName, nodeNameAllowed, secret } from "../settings/settings.ts"
import { isScope, type Scope, scopes } from "./scopes.ts"

/** A secret that the server accepts. */
export interface KnownSecret {
  readonly name: string
  readonly scopes: ReadonlyArray<Scope>
  /** The secret in the clear; undefined if only its hash is known. */
  readonly text: string | undefined
  /** SHA-256 of the secret, in lower-case hex; undefined if it is compared in the clear. */
  readonly sha256: string | undefined
}

/**
 * Names of callers without a named secret: with the one secret of the specification, on an open server, with an unknown
 * secret, with a token.
 */
export const reservedNames = { one: "default", open: "none", unknown: "unknown", token: "token" } as const

const fewestCharacters = 16
/** Most secrets in a file, since each request is compared with all of them. */
const mostEntries = 1000

/** SHA-256 of a text in lower-case hex. */
export const hashOf = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)))

/** The one secret of the specification, which opens everything. */
export const oneSecret = (text: string): KnownSecret => ({ name: reservedNames.one, scopes, text, sha256: undefined })

/** Key of a secret; entries with equal keys accept the same secret. */
const keyOf = ({ sha256, text = "" }: KnownSecret): string => sha256 ?? hashOf(text)

/**
 * The scope that a misspelt word was meant to be. The word itself is never shown: it may be the secret, in the wrong
 * field.
 */
const nearOf = (word: string): string | undefined => (word.length > 20 ? undefined : closest(word, scopes))

const scopeFault = (word: string): string => {
  const near = nearOf(word)
  return `has a scope that does not exist${near === undefined ? "" : `, did you mean ${near}?`} (scopes are ${scopes.join(", ")}, with commas between)`
}

type Held = Pick<KnownSecret, "text" | "sha256">

const heldOf = (field: string): Held | string => {
  if (field.startsWith("sha256:")) {
    const hex = field.slice("sha256:".length).toLowerCase()
    return /^[0-9a-f]{64}$/.test(hex)
      ? { text: undefined, sha256: hex }
      : "has a hash that is not 64 hexadecimal digits behind `sha256:`"
  }
  if (!/^[\x21-\x7e]+$/.test(field)) return "has a secret that is not visible ASCII characters"
  return field.length < fewestCharacters
    ? `has a secret of fewer than ${fewestCharacters} characters`
    : { text: field, sha256: undefined }
}

const faultsOf = (name: string, words: ReadonlyArray<string>, held: Held | string): ReadonlyArray<string> => [
  ...(nodeName.test(name) ? [] : [`has a name that is not ${nodeNameAllowed}`]),
  ...(Object.values<string>(reservedNames).includes(name) ? ["has a name that is taken"] : []),
  ...words
    .filter((word) => !isScope(word))
    .slice(0, 1)
    .map(scopeFault),
  ...(new Set(words).size < words.length ? ["has a scope twice"] : []),
  ...(typeof held === "string" ? [held] : []),
  ...(typeof held !== "string" && held.text === undefined && words.includes("ssp")
    ? ["has the scope ssp and a hash; the scheduler sends this secret to the SSP, so it must be in the clear"]
    : [])
]

interface Line {
  readonly entry: KnownSecret | undefined
  /** Place in the file: `line 3 (grafana)`. */
  readonly place: string
  readonly faults: ReadonlyArray<string>
}

/** The name is shown only if the two fields behind it are valid: otherwise it may be the secret. */
const lineOf = (number: number, fields: ReadonlyArray<string>): Line => {
  const [name = "", scopeField = "", secretField = ""] = fields
  if (fields.length !== 3)
    return {
      entry: undefined,
      place: `line ${number}`,
      faults: [`has ${fields.length} field${fields.length === 1 ? "" : "s"} and not three`]
    }
  const words = scopeField.split(",")
  const held = heldOf(secretField)
  const faults = faultsOf(name, words, held)
  const place =
    nodeName.test(name) && words.some((word) => nearOf(word) !== undefined) && typeof held !== "string"
      ? `line ${number} (${name})`
      : `line ${number}`
  return {
    entry: faults.length > 0 || typeof held === "string" ? undefined : { name, scopes: words.filter(isScope), ...held },
    place,
    faults
  }
}

/** Parses all lines; collects every fault with its line. No fault shows a secret. */
export const parse = (
  text: string
): { readonly entries: ReadonlyArray<KnownSecret>; readonly faults: ReadonlyArray<string> } => {
  const lines = text.split(/\r?\n/).flatMap((line, n) => {
    const fields = line.split(/[ \t]+/).filter((field) => field !== "")
    return fields.length === 0 || fields[0]?.startsWith("#") ? [] : [lineOf(n + 1, fields)]
  })
  if (lines.length === 0 || lines.length > mostEntries)
    return { entries: [], faults: [`it has ${lines.length} entries; must be 1 to ${mostEntries}`] }
  const faults: Array<string> = []
  const names = new Map<string, string>()
  const secrets = new Map<string, string>()
  for (const { entry, faults: own, place } of lines) {
    faults.push(...own.map((fault) => `${place} ${fault}`))
    if (entry === undefined) continue
    const [sameName, sameSecret] = [names.get(entry.name), secrets.get(keyOf(entry))]
    if (sameName !== undefined) faults.push(`${place} has the name of ${sameName}`)
    if (sameSecret !== undefined) faults.push(`${place} has the secret of ${sameSecret}`)
    names.set(entry.name, place)
    secrets.set(keyOf(entry), place)
  }
  return { entries: lines.flatMap(({ entry }) => entry ?? []), faults }
}

/**
 * Names of entries with the specification's one secret, or an earlier one: their scopes would be ignored, because that
 * secret opens everything.
 */
export const namesWithSecret = (
  entries: ReadonlyArray<KnownSecret>,
  others: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const taken = new Set(others.map(hashOf))
  return entries.filter((entry) => taken.has(keyOf(entry))).map(({ name }) => name)
}

/** The secret shared by the scheduler and the SSP of this name; undefined if there is none. */
export const secretOfSsp = (entries: ReadonlyArray<KnownSecret>, ssp: string): string | undefined =>
  entries.find(({ name, scopes }) => name === ssp && scopes.includes("ssp"))?.text

/** The setting with the file's path, the same for both servers. */
export const knob: Knob<ReadonlyArray<KnownSecret> | undefined> = {
  ...secret("SVC_AUTH_SECRETS", {
    meaning: `Secrets that open some of the endpoints, beside the one that opens all: one a line, with a name for the audit lines and the scopes it has. Scopes are ${scopes.map((scope) => `\`${scope}\``).join(", ")}.`
  }),
  fallback: undefined,
  allowed: `lines of \`<name> <scope>[,<scope>...] <secret>\`, where the secret is at least ${fewestCharacters} visible ASCII characters, or \`sha256:\` and the SHA-256 of it in hexadecimal`,
  read: (text) => {
    const { entries, faults } = parse(text)
    return faults.length > 0 ? undefined : entries
  },
  explain: (text) => parse(text).faults
}
