/**
 * The forms with three schedulers and a server for their log, held against the code: the compose file that is laid over
 * `compose.yaml`, and the Kubernetes overlay.
 */

import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import type { Answer, Compose, Json } from "../../kit/processes/containers.ts"
import {
  at,
  compose,
  faultsOf,
  hardeningFaults,
  list,
  manifests,
  notFiles,
  oursOf,
  podContainer,
  read,
  serviceContainer,
  text
} from "../../kit/processes/containers.ts"
import { root } from "../../kit/rules/source.ts"

const names = ["scheduler", "scheduler-2", "scheduler-3"]

describe("compose.cluster.yaml", () => {
  const file = compose("compose.yaml", "compose.cluster.yaml")
  const ours = oursOf(file)
  const env = (name: string) => file.services[name]?.["environment"] as { readonly [name: string]: string }

  it("has three schedulers on one log, each of a name, address, port and volume of its own", () => {
    expect(ours.map(([name]) => name).filter((name) => name.startsWith("scheduler"))).toEqual(names)
    expect(ours.flatMap((entry) => faultsOf(serviceContainer(entry)))).toEqual([])
    expect(
      names.map((name) => {
        const { SCHEDULER_ID, SVC_LOG_URL_FILE, SVC_SCHEDULER_ADVERTISE } = env(name)
        const { ports, volumes } = file.services[name]!
        return [SCHEDULER_ID, SVC_SCHEDULER_ADVERTISE, SVC_LOG_URL_FILE, ports, volumes]
      })
    ).toEqual(
      names.map((name, n) => [
        name,
        `${name}:9667`,
        "/run/secrets/log_url",
        [`127.0.0.1:${9667 + n}:9667`],
        [`${name}:/data`]
      ])
    )
    for (const name of ["ssp-1", "ssp-2"])
      expect(env(name)["SCHEDULER_URL"]).toBe(names.map((each) => `http://${each}:9667`).join(","))
  })
  it("the schedulers differ in nothing else", () => {
    const rest = (name: string) => {
      const { build: _b, depends_on: _d, ports: _p, secrets, volumes: _v, ...service } = file.services[name]!
      const { SCHEDULER_ID: _i, SVC_SCHEDULER_ADVERTISE: _a, ...settings } = env(name)
      return { ...service, environment: settings, secrets: [...(secrets as ReadonlyArray<string>)].sort() }
    }
    for (const name of names.slice(1)) expect(rest(name), name).toEqual(rest("scheduler"))
  })
  it("is as hardened as the other, with secrets in files, and its PostgreSQL keeps what it flushes on a volume", () => {
    expect(hardeningFaults(file)).toEqual([])
    expect(notFiles(file)).toEqual([])
    const log = file.services["log"]!
    expect([log["user"], log["volumes"], log["ports"], JSON.stringify(log["command"] ?? "")]).toEqual([
      "999:999",
      ["log:/var/lib/postgresql/data"],
      undefined,
      expect.not.stringMatching(/fsync|synchronous_commit/)
    ])
  })
  it("can fail: a port for all, a secret that is none, a container without bounds are seen", () => {
    const spoilt = (name: string, change: Json): Compose => ({
      ...file,
      services: { ...file.services, [name]: { ...file.services[name], ...change } }
    })
    expect(hardeningFaults(spoilt("log", { ports: ["5432:5432"] }))).toHaveLength(1)
    expect(hardeningFaults(spoilt("log", { secrets: ["log_pass", "other"] }))).toHaveLength(1)
    expect(hardeningFaults(spoilt("log", { secrets: [] }))).toHaveLength(1)
    expect(hardeningFaults(spoilt("scheduler-2", { mem_limit: undefined }))).toHaveLength(1)
    expect(hardeningFaults(spoilt("scheduler-2", { volumes: ["elsewhere:/data"] }))).toHaveLength(1)
    expect(notFiles({ ...file, secrets: { ...file.secrets, log_url: { environment: "LOG_URL" } } })).toEqual([
      "log_url"
    ])
  })
})

describe("scripts/kubernetes-cluster", () => {
  const folder = "scripts/kubernetes-cluster"
  const kustomization = parse(text(`${folder}/kustomization.yaml`)) as Json
  const patches = list(kustomization["patches"])

  /** What the patches of a target make of its document; throws where one does not apply. */
  const patched = (document: Json): Json => {
    const copy = structuredClone(document)
    const target = { kind: document["kind"], name: at(document, "metadata", "name") }
    const { path } = patches.find((each) => JSON.stringify(each["target"]) === JSON.stringify(target))!
    for (const { op, path: pointer, value } of parse(text(`${folder}/${String(path)}`)) as ReadonlyArray<Json>) {
      const keys = String(pointer).split("/").slice(1)
      const key = keys.pop()!
      const parent = at(copy, ...keys) as { [key: string]: unknown }
      if (op === "add" && key === "-") (parent as unknown as Array<unknown>).push(value)
      else if ((op === "replace") === key in parent) parent[key] = value
      else throw new Error(`${String(op)} ${String(pointer)} does not apply`)
    }
    return copy
  }
  const base = (file: string, kind: string): Json =>
    manifests(`scripts/kubernetes/${file}`).find(
      (each) => each["kind"] === kind && at(each, "metadata", "name") === "scheduler"
    )!
  const set = patched(base("scheduler.yaml", "StatefulSet"))
  const policy = patched(base("network.yaml", "NetworkPolicy"))
  const added = manifests(`${folder}/schedulers.yaml`)

  it("names every file, and lies over the other one", () => {
    expect(
      [...(kustomization["resources"] as ReadonlyArray<string>), ...patches.map(({ path }) => path)].sort()
    ).toEqual(
      ["../kubernetes", ...readdirSync(join(root, folder)).filter((name) => name !== "kustomization.yaml")].sort()
    )
  })
  it("runs three schedulers on one log, and each takes its settings without a word", () => {
    const main = at(set, "spec", "template", "spec", "containers", 0) as Json
    const { env } = podContainer(main)
    expect(at(set, "spec", "replicas")).toBe(3)
    expect(faultsOf(podContainer(main))).toEqual([])
    expect([env["SVC_LOG_URL_FILE"], list(main["env"]).at(-2)?.["value"]]).toEqual([
      "/run/secrets/live-sidecar/svc-log-url",
      "$(SCHEDULER_ID).schedulers:9667"
    ])
    expect((read(podContainer(main)) as Answer).port).toBe(9667)
  })
  it("each is reached under its own name, before it is ready, and one at a time may be taken away", () => {
    const [service, budget] = added
    expect([at(set, "spec", "serviceName"), at(service, "metadata", "name"), service!["spec"]]).toEqual([
      "schedulers",
      "schedulers",
      {
        clusterIP: "None",
        publishNotReadyAddresses: true,
        selector: at(set, "spec", "selector", "matchLabels"),
        ports: [{ name: "http", port: 9667, targetPort: "http" }]
      }
    ])
    expect(budget!["spec"]).toEqual({ maxUnavailable: 1, selector: at(set, "spec", "selector") })
  })
  it("lets schedulers talk to each other and to the server of the log", () => {
    const scheduler = { podSelector: { matchLabels: { "app.kubernetes.io/name": "scheduler" } } }
    expect(at(policy, "spec", "ingress", 0, "from")).toContainEqual(scheduler)
    expect(at(policy, "spec", "egress")).toContainEqual({ to: [scheduler], ports: [{ protocol: "TCP", port: 9667 }] })
    expect(list(at(policy, "spec", "egress")).flatMap(({ ports }) => list(ports).map(({ port }) => port))).toEqual(
      expect.arrayContaining([5432, 4222])
    )
  })
})
