/**
 * Common parts of both processes' configurations: the file, all faults as one, secrets, generated names (D5a).
 *
 * In one place, so that an operator reads the same messages from both.
 */
import { Effect, Random, Redacted } from "effect"
import { type KnownSecret, namesWithSecret, oneSecret } from "../../core/access/scopedSecrets.ts"
import * as ServiceFile from "../../core/settings/serviceFile.ts"
import type { ConfigSourceShape } from "../../ports/ConfigSource.ts"
import { StartFault } from "../../ports/StartFault.ts"

/** One start fault that lists all faults for the operator. */
export const configFault = (faults: ReadonlyArray<string>): StartFault =>
  new StartFault({
    exitCode: 2,
    message: [
      `${faults.length} fault${faults.length === 1 ? "" : "s"} in the configuration:`,
      ...faults.map((fault) => `  ${fault}`)
    ].join("\n")
  })

export const redacted = (secret: string | undefined): Redacted.Redacted<string> | undefined =>
  secret === undefined ? undefined : Redacted.make(secret)

/** The configuration file with its references replaced: decoded, and as raw content. Faults name the file. */
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
 * Secrets that are accepted: the current one, earlier ones, and named ones; without a current one the earlier ones do
 * not count (D15).
 */
export const acceptedSecrets = (
  current: string | undefined,
  previous: ReadonlyArray<string> | undefined,
  scoped: ReadonlyArray<KnownSecret> | undefined
): ReadonlyArray<KnownSecret> => [
  ...(current === undefined ? [] : [current, ...(previous ?? [])].map(oneSecret)),
  ...(scoped ?? [])
]

/** Faults of named secrets that equal an unnamed one; `settings` names where that is set. */
export const sameSecretFaults = (
  scoped: ReadonlyArray<KnownSecret> | undefined,
  others: ReadonlyArray<string | undefined>,
  settings: string
): ReadonlyArray<string> =>
  namesWithSecret(
    scoped ?? [],
    others.filter((one) => one !== undefined)
  ).map((name) => `SVC_AUTH_SECRETS: ${name} has the secret of ${settings}, which opens everything; must be another`)

/** Resolves a path of the configuration file relative to that file (D5a). */
export const relativeTo = (file: string, path: string): string => {
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
