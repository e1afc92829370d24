/**
 * Containers as Dockerfile, compose files and Kubernetes manifests describe them, and what our programs make of their
 * settings.
 *
 * The settings of each container are read by the same code that its program reads them with, so that no container
 * engine is needed to see that one is misspelt.
 */

import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import { parse, parseAllDocuments } from "yaml"
import * as SchedulerCli from "../../src/scheduler/Cli.ts"
import * as SchedulerConfig from "../../src/scheduler/Config.ts"
import * as SspConfig from "../../src/ssp/Config.ts"
import * as SspCli from "../../src/ssp/commands/Cli.ts"
import { root } from "../rules/source.ts"
import { all, env as envOf, stages } from "./dockerfile.ts"

export type Json = { readonly [key: string]: unknown }

export const text = (path: string): string => readFileSync(join(root, path), "utf8")
export const { version } = JSON.parse(text("package.json")) as { readonly version: string }
export const image = `surreal-live-sidecar:${version}`

export const list = (value: unknown): ReadonlyArray<Json> => (value ?? []) as ReadonlyArray<Json>
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>((found, key) => (found as Json | undefined)?.[key], value)

export const docker = stages(text("Dockerfile"))
export const last = docker.at(-1) ?? []
export const imageEnv = envOf(last)

export interface Container {
  readonly name: string
  readonly image: string
  /** Arguments of node; the image's own when absent. */
  readonly args: ReadonlyArray<string> | undefined
  readonly env: { readonly [name: string]: string }
}

export type Answer = {
  readonly port: number
  readonly paths: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
}

/** What the door of a container makes of its settings, or its faults. */
export const read = ({
  args = JSON.parse(all(last, "CMD")[0] ?? "[]") as ReadonlyArray<string>,
  env
}: Container): Answer | string => {
  const source = {
    env: { ...imageEnv, ...env },
    file: undefined,
    readText: (path: string) => ({ text: path.endsWith("url") ? "postgres://svc:p@log/svc" : "a-secret" }),
    hostName: "h"
  }
  if (args[0] === "dist/scheduler.js") {
    return Either.match(Effect.runSync(Effect.either(SchedulerConfig.read(source, "u"))), {
      onLeft: ({ message }) => message,
      onRight: ({ listen, replicaDbPath, walPath, warnings }) => ({
        port: listen.port,
        paths: [replicaDbPath, walPath],
        warnings
      })
    })
  }
  if (args[0] !== "dist/ssp.js") return `no door: ${args[0]}`
  return Either.match(Effect.runSync(Effect.either(SspConfig.read(source, "u"))), {
    onLeft: ({ message }) => message,
    onRight: ({ dataDir, listen, warnings }) => ({ port: listen.port, paths: [dataDir], warnings })
  })
}

/** Faults of a container's settings; none when its door would start without a word. */
export const faultsOf = (container: Container): ReadonlyArray<string> => {
  const answer = read(container)
  if (typeof answer === "string") return [answer]
  return [
    ...answer.warnings,
    ...answer.paths
      .filter((path) => path !== "/data" && !path.startsWith("/data/"))
      .map((path) => `keeps ${path}, which is not on the volume`)
  ].map((fault) => `${container.name}: ${fault}`)
}

export const secrets = { SVC_AUTH_SECRET: "s", SVC_SCHEDULER_AUTH_SECRET: "t" }

export const flagsOf = (door: string): string => (door === "dist/scheduler.js" ? SchedulerCli : SspCli).help("0")

/** A compose file whose anchors are merged; `over` is laid over it as `docker compose -f … -f …` does. */
export interface Compose {
  readonly services: { readonly [name: string]: Json }
  readonly secrets: Json
  readonly volumes: Json
  readonly configs: Json
}

const laidOver = (base: unknown, over: unknown): unknown =>
  Array.isArray(base) && Array.isArray(over)
    ? [...base, ...over]
    : typeof base === "object" && base !== null && !Array.isArray(base) && typeof over === "object" && over !== null
      ? Object.fromEntries(
          [...new Set([...Object.keys(base), ...Object.keys(over)])].map((key) => [
            key,
            laidOver((base as Json)[key], (over as Json)[key])
          ])
        )
      : (over ?? base)

export const compose = (...paths: ReadonlyArray<string>): Compose =>
  paths.map((path) => parse(text(path), { merge: true }) as Compose).reduce((a, b) => laidOver(a, b) as Compose)

/** The services of our image. */
export const oursOf = (file: Compose): ReadonlyArray<readonly [name: string, service: Json]> =>
  Object.entries(file.services).filter(([, service]) => service["image"] === image)

export const serviceContainer = ([name, service]: readonly [string, Json]): Container => ({
  name,
  image,
  args: service["command"] as ReadonlyArray<string> | undefined,
  env: service["environment"] as { readonly [name: string]: string }
})

/** Documents of a folder's YAML file; throws where one is none. */
export const manifests = (path: string): ReadonlyArray<Json> =>
  parseAllDocuments(text(path)).map((document) => {
    if (document.errors.length > 0) throw new Error(`${path}: ${document.errors[0]!.message}`)
    return document.toJS() as Json
  })

/** A container of a pod whose ordinal is 0. */
export const podContainer = (main: Json): Container => ({
  name: String(main["name"]),
  image,
  args: main["args"] as ReadonlyArray<string>,
  env: Object.fromEntries(
    list(main["env"]).map(({ name, value }) => [
      String(name),
      value === undefined ? "a-name" : String(value).replace(/\$\(\w+\)/, "a-name")
    ])
  )
})

/** Where a compose file's services lack what every container must have, or name what is not declared. */
export const hardeningFaults = (file: Compose): ReadonlyArray<string> =>
  Object.entries(file.services).flatMap(([name, service]) => {
    const expected = {
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      mem_limit: "2g",
      memswap_limit: "2g",
      pids_limit: 256
    }
    const named = (key: string, declared: Json, of: (each: string) => string): ReadonlyArray<string> =>
      ((service[key] ?? []) as ReadonlyArray<string>)
        .filter((each) => !(of(each) in declared))
        .map((each) => `${name}: ${key} names ${each}, which is not declared`)
    const env = Object.entries((service["environment"] ?? {}) as { readonly [name: string]: string })
    return [
      ...Object.entries(expected)
        .filter(([key, value]) => JSON.stringify(service[key]) !== JSON.stringify(value))
        .map(([key]) => `${name}: ${key} is ${JSON.stringify(service[key])}`),
      ...named("secrets", file.secrets, (each) => each),
      ...named("volumes", file.volumes, (each) => each.split(":")[0]!),
      ...env
        .filter(
          ([, value]) =>
            value.startsWith("/run/secrets/") &&
            !((service["secrets"] ?? []) as ReadonlyArray<string>).includes(value.slice("/run/secrets/".length))
        )
        .map(([key]) => `${name}: ${key} names a secret that it does not have`),
      ...((service["ports"] ?? []) as ReadonlyArray<string>)
        .filter((port) => !port.startsWith("127.0.0.1:"))
        .map((port) => `${name}: publishes ${port} beyond this machine`),
      ...Object.entries((service["depends_on"] ?? {}) as Json).flatMap(([needed, how]) => {
        const ends = file.services[needed]?.["restart"] === "no"
        const isRight = at(how, "condition") === (ends ? "service_completed_successfully" : "service_healthy")
        return isRight && (ends || "healthcheck" in (file.services[needed] ?? {}))
          ? []
          : [`${name}: waits for ${needed} in a way that it never is`]
      }),
      ...(/:v?\d+\.\d+(?:\.\d+)?$/.test(String(service["image"]))
        ? []
        : [`${name}: ${service["image"]} is no exact image`])
    ]
  })

/** Secrets and configurations of a compose file that are not files, which Compose cannot put into read-only containers. */
export const notFiles = (file: Compose): ReadonlyArray<string> =>
  Object.entries({ ...file.secrets, ...file.configs })
    .filter(([, how]) => typeof at(how, "file") !== "string")
    .map(([name]) => name)
