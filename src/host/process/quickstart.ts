/**
 * A first run without any set-up: a secret for this run, and commands that work as they are printed.
 *
 * Only on request: a secret that a person chose must never appear in a log. Such a secret is given to the commands by a
 * file instead.
 */

import { randomBytes, X509Certificate } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import { type HostPort, reachable } from "../../core/settings/address.ts"
import type { Tls } from "../../node/config/tls.ts"
import { ConfigSource, type ConfigSourceShape } from "../../ports/ConfigSource.ts"
import { Serving } from "../../ports/Front.ts"

const isSet = (source: ConfigSourceShape): boolean =>
  ["SVC_AUTH_SECRET", "SVC_AUTH_SECRET_FILE"].some((name) => source.env[name] !== undefined && source.env[name] !== "")

/** The configuration with a generated secret if it has none. */
export const layerSecret: Layer.Layer<ConfigSource, never, ConfigSource> = Layer.effect(
  ConfigSource,
  Effect.map(ConfigSource, (source) =>
    isSet(source)
      ? source
      : { ...source, env: { ...source.env, SVC_AUTH_SECRET: randomBytes(18).toString("base64url") } }
  )
)

/** Writes a private file, which is removed when the process ends. */
const lent = (name: string, text: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "live-sidecar-"))
      const path = join(folder, name)
      writeFileSync(path, text, { mode: 0o600 })
      return { folder, path }
    }),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ).pipe(Effect.map(({ path }) => path))

/**
 * The option by which curl gets the secret: in clear text if this run generated it, else by a file with the header. A
 * secret that a person chose is never printed, and no other terminal has it in its environment.
 */
const bearerOf = (secret: string, made: boolean): Effect.Effect<string, never, Scope.Scope> =>
  made
    ? Effect.succeed(`-H 'Authorization: Bearer ${secret}'`)
    : Effect.map(lent("bearer", `authorization: Bearer ${secret}\n`), (path) => `-H '@${path}'`)

interface Told {
  readonly url: string
  /** Options of curl beside the address, with a leading blank. */
  readonly options: string
  readonly secret: string | undefined
  readonly bearer: string
  readonly store: string
}

/** URL with a name of the certificate, and options that make curl trust and resolve it. */
const addressOf = (
  listen: HostPort,
  port: number,
  cert: string | undefined,
  trusted: string
): Pick<Told, "url" | "options"> => {
  if (cert === undefined) return { url: reachable(listen, port, "127.0.0.1"), options: "" }
  const { hostname, origin } = new URL(reachable(listen, port, "127.0.0.1", "https"))
  const host = hostname.replace(/^\[|\]$/g, "")
  const known = new X509Certificate(cert)
  const options = ` --cacert '${trusted}'`
  if (known.checkIP(host) !== undefined || known.checkHost(host) !== undefined) return { url: origin, options }
  const name = /DNS:([^\s,*]+)/.exec(known.subjectAltName ?? "")?.[1] ?? "localhost"
  return { url: `https://${name}:${port}`, options: `${options} --resolve '${name}:${port}:${host}'` }
}

const lines = ({ bearer, options, secret, store, url }: Told): ReadonlyArray<string> => {
  const curl = `curl -s${options} ${url}`
  return [
    "",
    `  address      ${url}   (docs at ${url}/docs)`,
    `  store        ${store}`,
    secret === undefined
      ? "  secret       the one you set   (the lines below read it from a file that only you can read and that goes with this process)"
      : `  secret       ${secret}   (made up for this run; set SVC_AUTH_SECRET to choose one)`,
    "",
    "Try it in another terminal: a view, its stream for five seconds, meanwhile a change, and what the view shows now:",
    "",
    `  ${curl}/view/register ${bearer} -d '{"id":"incantation:fast","surql":"SELECT * FROM car WHERE horsepower > 200 ORDER BY horsepower DESC LIMIT 5","clientId":"me","ttl":"1h","format":"tree"}'`,
    `  curl -sN${options} --max-time 5 ${url}/view/incantation:fast/stream ${bearer} &`,
    `  sleep 1; ${curl}/ingest ${bearer} -d '{"table":"car","op":"CREATE","id":"car:gto","record":{"name":"Pontiac GTO","horsepower":370}}'`,
    `  ${curl}/view/incantation:fast ${bearer}`,
    ""
  ]
}

/** Prints once the server listens. `secret` is shown only if this run generated it. */
export const layerGreeting = (
  listen: HostPort,
  tls: Tls | undefined,
  secret: string,
  store: string
): Layer.Layer<never, never, Serving> =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const serving = yield* Serving
      const made = !["SVC_AUTH_SECRET", "SVC_AUTH_SECRET_FILE"].some((name) => (process.env[name] ?? "") !== "")
      const bearer = yield* bearerOf(secret, made)
      const material = tls?.current()
      const trusted = material === undefined ? "" : yield* lent("trusted.pem", `${material.ca ?? ""}\n${material.cert}`)
      yield* serving.port.pipe(
        Effect.map((port) => {
          const told = { ...addressOf(listen, port, material?.cert, trusted), bearer, store }
          process.stdout.write(`${lines({ ...told, secret: made ? secret : undefined }).join("\n")}\n`)
        }),
        Effect.forkScoped
      )
    })
  )
