/**
 * What the configurations of both processes share: the file as read, all faults as one, secrets, made-up names (D5a).
 *
 * One place, so that an operator meets the same words whichever process refuses.
 */
import { Effect, Random, Redacted } from "effect"
import { type KnownSecret, oneSecret, sameAs } from "../../core/access/scopedSecrets.ts"
import * as ServiceFile from "../../core/settings/serviceFile.ts"
import type { ConfigSourceShape } from "../../ports/ConfigSource.ts"
import { StartFault } from "../../ports/StartFault.ts"

/** Every fault at once, as the operator reads it. */
export const refused = (faults: ReadonlyArray<string>): StartFault =>
  new StartFault({
    exitCode: 2,
    message: [
      `${faults.length} fault${faults.length === 1 ? "" : "s"} in the configuration:`,
      ...faults.map((fault) => `  ${fault}`)
    ].join("\n")
  })

export const redacted = (secret: string | undefined): Redacted.Redacted<string> | undefined =>
  secret === undefined ? undefined : Redacted.make(secret)

/** The configuration file with its references replaced: as what it means, and as it is. Faults name the file. */
export const readFile = (
  { env, file }: ConfigSourceShape,
  faults: Array<string>
): { readonly read: ServiceFile.ServiceFile; readonly content: unknown } => {
  if (file === undefined) return { read: ServiceFile.read(undefined, faults), content: undefined }
  if (file.fault !== undefined) faults.push(`${file.path}: ${file.fault}`)
  const inFile: Array<string> = []
  const content = ServiceFile.interpolate(file.content, env, inFile)
  const read = ServiceFile.read(content, inFile)
  faults.push(...inFile.map((fault) => `${file.path}: ${fault}`))
  return { read, content }
}

/**
 * Secrets that are let in: the one of now, those before it, and those by name; without one of now those before it are
 * not (D15).
 */
export const inForce = (
  current: string | undefined,
  previous: ReadonlyArray<string> | undefined,
  scoped: ReadonlyArray<KnownSecret> | undefined
): ReadonlyArray<KnownSecret> => [
  ...(current === undefined ? [] : [current, ...(previous ?? [])].map(oneSecret)),
  ...(scoped ?? [])
]

/** Faults of entries that have the one secret; `settings` names where that is set. */
export const sameSecretFaults = (
  scoped: ReadonlyArray<KnownSecret> | undefined,
  others: ReadonlyArray<string | undefined>,
  settings: string
): ReadonlyArray<string> =>
  sameAs(
    scoped ?? [],
    others.filter((one) => one !== undefined)
  ).map((name) => `SVC_AUTH_SECRETS: ${name} has the secret of ${settings}, which opens everything; must be another`)

/** Paths in the file are relative to it (D5a). */
export const besides = (file: string, path: string): string => {
  const slash = file.lastIndexOf("/")
  return path.startsWith("/") || slash < 0 ? path : `${file.slice(0, slash + 1)}${path}`
}

const hex = (digits: number): Effect.Effect<string> =>
  Effect.map(Effect.all(Array.from({ length: digits }, () => Random.nextIntBetween(0, 16))), (ns) =>
    ns.map((n) => n.toString(16)).join("")
  )

/** A version 4 uuid from the Random service, so that a seeded test gets the same one. */
export const uuid: Effect.Effect<string> = Effect.map(
  Effect.all([hex(8), hex(4), hex(3), Random.nextIntBetween(8, 12), hex(3), hex(12)]),
  ([a, b, c, variant, d, e]) => `${a}-${b}-4${c}-${variant.toString(16)}${d}-${e}`
)
