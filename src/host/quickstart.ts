/**
 * A first run without any set-up: a secret for this run, and commands that work as they are printed.
 *
 * Only on request: a secret that appears in a log must never be one that somebody chose.
 */
import { Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { type HostPort, reachable } from "../core/address.ts"
import { ConfigSource, type ConfigSourceShape } from "../ports/ConfigSource.ts"
import { Serving } from "../ports/Front.ts"

const isSet = (source: ConfigSourceShape): boolean => ["SVC_AUTH_SECRET", "SVC_AUTH_SECRET_FILE"].some((name) => source.env[name] !== undefined && source.env[name] !== "")

/** The source as it is, with a made-up secret where there is none. */
export const layerSecret: Layer.Layer<ConfigSource, never, ConfigSource> = Layer.effect(
  ConfigSource,
  Effect.map(ConfigSource, (source) => (isSet(source) ? source : { ...source, env: { ...source.env, SVC_AUTH_SECRET: randomBytes(18).toString("base64url") } }))
)

const lines = (url: string, secret: string, made: boolean, store: string): ReadonlyArray<string> => {
  const curl = `curl -s ${url}`
  const bearer = made ? `-H 'Authorization: Bearer ${secret}'` : `-H "Authorization: Bearer $SVC_AUTH_SECRET"`
  return [
    "",
    `  address      ${url}   (docs at ${url}/docs)`,
    `  store        ${store}`,
    made ? `  secret       ${secret}   (made up for this run; set SVC_AUTH_SECRET to choose one)` : "  secret       the one you set",
    "",
    "Try it: a view, a change, and what the view shows now:",
    "",
    `  ${curl}/view/register ${bearer} -d '{"id":"incantation:fast","surql":"SELECT * FROM car WHERE horsepower > 200 ORDER BY horsepower DESC LIMIT 5","clientId":"me","ttl":"1h","format":"tree"}'`,
    `  ${curl}/ingest ${bearer} -d '{"table":"car","op":"CREATE","id":"car:gto","record":{"name":"Pontiac GTO","horsepower":370}}'`,
    `  ${curl}/view/incantation:fast ${bearer}`,
    "",
    `Follow it live: curl -sN ${url}/view/incantation:fast/stream ${bearer}`,
    ""
  ]
}

/** Prints once the server listens. `secret` is shown only when this run made it up. */
export const layerGreeting = (listen: HostPort, secret: string, store: string): Layer.Layer<never, never, Serving> =>
  Layer.scopedDiscard(
    Effect.gen(function*() {
      const serving = yield* Serving
      const made = !["SVC_AUTH_SECRET", "SVC_AUTH_SECRET_FILE"].some((name) => (process.env[name] ?? "") !== "")
      yield* serving.port.pipe(
        Effect.map((port) => void process.stdout.write(`${lines(reachable(listen, port, "127.0.0.1"), secret, made, store).join("\n")}\n`)),
        Effect.forkScoped
      )
    })
  )
