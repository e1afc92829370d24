/**
 * What runs the service in containers, held against the code: Dockerfile, compose file and Kubernetes manifests.
 *
 * No container engine is needed to see that a setting is misspelt, a port is another one, or a probe asks a path that
 * nobody serves. The settings of each container are read by the same code that its door reads them with.
 */

import { execFile, execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import type { Answer, Json } from "../../kit/processes/containers.ts"
import {
  at,
  compose,
  docker,
  faultsOf,
  flagsOf,
  hardeningFaults,
  image,
  imageEnv,
  last,
  list,
  manifests,
  notFiles,
  oursOf,
  podContainer,
  read,
  secrets,
  serviceContainer,
  text,
  version
} from "../../kit/processes/containers.ts"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { all, baseFaults, nodeVersion, repinned } from "../../kit/processes/dockerfile.ts"
import { node24 } from "../../kit/processes/runtimes.ts"
import { root } from "../../kit/rules/source.ts"
import { endpoints } from "../../scripts/docs/contractTables.ts"
import { maxMemory } from "../../src/core/settings/settings.ts"
import { defaultName } from "../../src/core/surreal/leastPrivilege.ts"

/** What the stage that installs what runs does. */
const productionRuns = (): ReadonlyArray<string> =>
  all(docker.find((stage) => / AS production$/.test(all(stage, "FROM")[0] ?? "")) ?? [], "RUN")

describe("Dockerfile", () => {
  it("builds from exact tags, and what runs has neither a compiler nor the tests' dependencies", () => {
    expect(baseFaults(text("Dockerfile"))).toEqual([])
    const bases = docker.map((stage) => /^(\S+)/.exec(all(stage, "FROM")[0] ?? "")?.[1] ?? "")
    const named = docker.flatMap((stage) => /AS (\S+)$/.exec(all(stage, "FROM")[0] ?? "")?.[1] ?? [])
    expect(bases.at(-1)).toMatch(/-slim@/)
    expect(
      all(last, "COPY")
        .filter((rest) => rest.startsWith("--from="))
        .map((rest) => /^--from=(\S+)/.exec(rest)?.[1])
        .filter((from) => !named.includes(from ?? ""))
    ).toEqual([])
    expect(
      docker
        .flatMap((stage) => all(stage, "RUN"))
        .filter((rest) => /npm (?:i|install)\b|curl|wget|sudo|latest/.test(rest))
    ).toEqual([])
    expect(productionRuns()[1]).toMatch(/^npm ci --omit=dev\b/)
    expect(docker.flatMap((stage) => all(stage, "ADD"))).toEqual([])
  })
  it("has the clients of SVC_LOG_URL, of the versions that the package asks for", () => {
    const { peerDependencies } = JSON.parse(text("package.json")) as {
      readonly peerDependencies: { readonly [name: string]: string }
    }
    const packages = ["@effect/sql-pg", "@nats-io/transport-node"]
    expect(productionRuns()[0]).toBe(
      `npm pkg delete ${packages.map((name) => `"devDependencies[${name}]"`).join(" ")} && npm pkg set ${packages
        .map((name) => `"dependencies[${name}]=${peerDependencies[name]}"`)
        .join(" ")}`
    )
  })
  it("runs on the newest Node of those that the package says it runs on and the tests run it on", () => {
    const { engines } = JSON.parse(text("package.json")) as { readonly engines: { readonly node: string } }
    const majors = engines.node.split(" || ").map((range) => Number(/^\^(\d+)\.\d+\.\d+$/.exec(range)?.[1]))
    const { dependencies } = JSON.parse(text("test/runtimes/package.json")) as {
      readonly dependencies: { readonly [name: string]: string }
    }
    const tested = Object.values(dependencies).map((spec) => spec.split("@")[1] ?? "")
    expect(majors).toEqual([20, ...tested.map((each) => Number(each.split(".")[0]))])
    expect(tested.at(-1)).toBe(nodeVersion(text("Dockerfile")))
  })
  it.runIf(node24.installed)("D43 sizes the heap by the container's memory, as SVC_MAX_MEMORY does by default", () => {
    const limit = (options: string): number =>
      Number(
        execFileSync(node24.command[0]!, ["-p", "require('v8').getHeapStatistics().heap_size_limit"], {
          encoding: "utf8",
          env: { NODE_OPTIONS: options }
        })
      )
    const percent = /^--max-old-space-size-percentage=(\d+)$/.exec(imageEnv["NODE_OPTIONS"] ?? "")?.[1]
    expect(Number(percent)).toBe(maxMemory.fallback)
    const [half, sized] = [limit("--max-old-space-size-percentage=50"), limit(imageEnv["NODE_OPTIONS"]!)]
    expect(sized / half).toBeGreaterThan(1.2)
    expect(sized / half).toBeLessThan(1.6)
  })
  it("a base without a digest, with a malformed one, or of another version is refused; pinBase takes what the registry says and nothing else", () => {
    const source = text("Dockerfile"),
      digest = "0123456789abcdef".repeat(4)
    const slim = /node:\S+-slim@\S+/.exec(source)?.[0] ?? ""
    for (const wrong of [
      "node:24-slim",
      "node:latest",
      slim.split("@")[0]!,
      slim.slice(0, -1),
      `${slim}0`,
      slim.replace("sha256", "sha512"),
      slim.replace(/@sha256:./, "@sha256:G"),
      slim.replace(/node:\d+/, "node:22"),
      `evil.example/${slim}`
    ]) {
      expect(baseFaults(source.replace(slim, wrong)), wrong).toHaveLength(1)
    }
    const asked: Array<string> = []
    const moved = repinned(source, "24.99.1", (tag) => (asked.push(tag), `sha256:${digest}`))
    expect([asked, baseFaults(moved), nodeVersion(moved)]).toEqual([
      ["node:24.99.1-bookworm", "node:24.99.1-bookworm-slim"],
      [],
      "24.99.1"
    ])
    expect(
      moved
        .split("\n")
        .filter((line, n) => line !== source.split("\n")[n])
        .every((line) => line.startsWith("FROM node:24.99.1-bookworm"))
    ).toBe(true)
    for (const answer of ["", "sha256:", "error: not found", digest])
      expect(() => repinned(source, "24.99.1", () => answer)).toThrow(/does not stand by exact version and digest/)
    expect(() => repinned(source, "24", () => `sha256:${digest}`)).toThrow(/exact version/)
  })
  it("names its packages: sbom.cdx.json lists those that are installed, no others, and is part of the image", async () => {
    const folder = temporaryFolder()
    try {
      cpSync(join(root, "package.json"), join(folder, "package.json"))
      cpSync(join(root, "package-lock.json"), join(folder, "package-lock.json"))
      const runs = ["effect", "@effect/platform", "better-sqlite3"]
      for (const name of runs)
        cpSync(join(root, "node_modules", name, "package.json"), join(folder, "node_modules", name, "package.json"))
      const sbom = async () =>
        JSON.parse(
          (
            await promisify(execFile)(process.execPath, [join(root, "scripts/sbom.mjs"), folder], {
              maxBuffer: 1 << 26
            })
          ).stdout
        ) as {
          readonly bomFormat: string
          readonly metadata: Json
          readonly components: ReadonlyArray<Json>
          readonly dependencies: ReadonlyArray<Json>
        }
      const bill = await sbom()
      expect([
        bill.bomFormat,
        at(bill.metadata, "component", "name"),
        at(bill.metadata, "component", "version")
      ]).toEqual(["CycloneDX", image.split(":")[0], version])
      expect(bill.components.map(({ hashes, name }) => [name, at(hashes, 0, "alg")]).sort()).toEqual(
        runs.map((name) => [name, "SHA-512"]).sort()
      )
      expect(bill.dependencies).toHaveLength(1 + runs.length)
      mkdirSync(join(folder, "node_modules/smuggled"))
      writeFileSync(
        join(folder, "node_modules/smuggled/package.json"),
        JSON.stringify({ name: "smuggled", version: "1.0.0" })
      )
      await expect(sbom()).rejects.toThrow(/not in package-lock\.json: smuggled@1\.0\.0/)
    } finally {
      removeFolder(folder)
    }
    expect(productionRuns().at(-1)).toBe("node scripts/sbom.mjs > sbom.cdx.json")
    expect(all(last, "COPY")).toContain("--from=production /app/sbom.cdx.json ./")
  })
  it("runs node itself as process 1, unprivileged, by a command without a shell", () => {
    expect(all(last, "ENTRYPOINT")).toEqual([`["node"]`])
    expect(JSON.parse(all(last, "CMD")[0] ?? "")).toEqual(["dist/ssp.js"])
    expect(all(last, "USER")).toEqual(["1000:1000"])
    expect(all(last, "STOPSIGNAL")).toEqual(["SIGTERM"])
  })
  it("asks for the health of the program that runs as process 1, whichever of the two, also behind an init", () => {
    const [, check = ""] = /CMD (.*)$/.exec(all(last, "HEALTHCHECK")[0] ?? "") ?? []
    const folder = temporaryFolder()
    const asked = (...processOne: ReadonlyArray<string>): string => {
      writeFileSync(join(folder, "cmdline"), `${processOne.join("\0")}\0`)
      writeFileSync(join(folder, "node"), '#!/bin/sh\necho "$@"', { mode: 0o755 })
      const env = { PATH: `${folder}:${process.env["PATH"]}` }
      return execFileSync("/bin/sh", ["-c", check.replace("/proc/1/cmdline", join(folder, "cmdline"))], { env })
        .toString()
        .trim()
    }
    try {
      expect([
        asked("node", "dist/ssp.js"),
        asked("node", "dist/scheduler.js"),
        asked("/sbin/docker-init", "--", "node", "/app/dist/scheduler.js"),
        asked("node", "dist/jobs.js", "run")
      ]).toEqual(["dist/ssp.js --health", "dist/scheduler.js --health", "/app/dist/scheduler.js --health", ""])
    } finally {
      removeFolder(folder)
    }
    for (const door of ["dist/ssp.js", "dist/scheduler.js"]) expect(flagsOf(door)).toContain("  --health ")
  })
  it("sets only what the doors know, keeps everything on the volume, and opens the ports of both", () => {
    expect(all(last, "VOLUME")).toEqual(["/data"])
    const scheduler = read({ name: "scheduler", image, args: ["dist/scheduler.js"], env: secrets }) as Answer
    const ssp = read({ name: "ssp", image, args: undefined, env: secrets }) as Answer
    for (const container of [
      { name: "scheduler", image, args: ["dist/scheduler.js"], env: secrets },
      { name: "ssp", image, args: undefined, env: secrets }
    ])
      expect(faultsOf(container)).toEqual([])
    expect(all(last, "EXPOSE")).toEqual([`${ssp.port} ${scheduler.port}`])
  })
  it("copies only what there is and what .dockerignore lets through, and no secret can come along", () => {
    const ignored = text(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
    expect(ignored[0]).toBe("*")
    const allowed = ignored.slice(1).map((line) => line.replace(/^!/, ""))
    const copied = docker
      .flatMap((stage) => all(stage, "COPY"))
      .filter((rest) => !rest.startsWith("--from="))
      .flatMap((rest) => rest.split(/\s+/).slice(0, -1))
      .map((path) => path.replace(/\/$/, ""))
    expect([...new Set(copied)].sort()).toEqual([...allowed].sort())
    expect(allowed.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})

describe("compose.yaml", () => {
  const file = compose("compose.yaml")
  const ours = oursOf(file)

  it("has a database, a scheduler, two SSPs and a setup, and each door takes its settings without a word", () => {
    expect(ours.map(([name]) => name)).toEqual(["database-user", "scheduler", "ssp-1", "ssp-2", "setup"])
    expect(ours.flatMap((entry) => faultsOf(serviceContainer(entry)))).toEqual([])
    for (const [name, { args }] of ours.map((entry) => [entry[0], serviceContainer(entry)] as const))
      for (const flag of (args ?? []).filter((arg) => arg.startsWith("--")))
        expect(flagsOf(args?.[0] ?? ""), name).toContain(flag)
  })
  it("publishes the port that the door listens on", () => {
    for (const entry of ours.filter(([, { ports }]) => ports !== undefined))
      expect(
        (entry[1]["ports"] as ReadonlyArray<string>).map((port) => Number(port.split(":")[2])),
        entry[0]
      ).toEqual([(read(serviceContainer(entry)) as Answer).port])
  })
  it("gives secrets as files that are declared, hardens and bounds every container, waits for healthy containers, and names every volume", () => {
    expect(hardeningFaults(file)).toEqual([])
    expect(notFiles(file)).toEqual([])
    for (const [name, service] of ours)
      expect(
        Object.entries(service["environment"] as Json).filter(([key]) => /(?:SECRET|PASS|PASSWORD)$/.test(key)),
        name
      ).toEqual([])
    const kept = text(".gitignore").split("\n")
    expect(["secrets/", ".env"].filter((path) => !kept.includes(path))).toEqual([])
    expect(existsSync(join(root, String(at(file.configs, "namespace", "file"))))).toBe(true)
  })
  it("gives the owner's password to those alone that define something in the database; what serves runs as the lesser user", () => {
    const env = (service: Json) => (service["environment"] ?? {}) as { readonly [name: string]: string }
    expect(
      ours
        .filter(
          ([, service]) =>
            (service["secrets"] as ReadonlyArray<string>).includes("surreal_pass") ||
            Object.values(env(service)).includes("root")
        )
        .map(([name]) => name)
    ).toEqual(["database-user", "setup"])
    for (const name of ["database-user", "setup"])
      expect(file.services[name]?.["command"], name).toContain("--install-database-setup")
    for (const name of ["scheduler", "ssp-1", "ssp-2"])
      expect(
        [env(file.services[name]!)["STORE_USER"] ?? env(file.services[name]!)["SVC_SCHEDULER_DB_USERNAME"]],
        name
      ).toEqual([defaultName])
  })
  it("names SSPs that the scheduler allows, at addresses of their own", () => {
    const env = (name: string) => file.services[name]?.["environment"] as { readonly [name: string]: string }
    expect(["ssp-1", "ssp-2"].map((name) => env(name)["ADVERTISE_ADDR"])).toEqual(["ssp-1:8667", "ssp-2:8667"])
    expect(env("scheduler")["SVC_SCHEDULER_SSP_URL_ALLOW"]).toBe("ssp-1,ssp-2")
    expect(["ssp-1", "ssp-2"].map((name) => env(name)["SCHEDULER_URL"])).toEqual(Array(2).fill("http://scheduler:9667"))
  })
})

describe("scripts/kubernetes", () => {
  const folder = "scripts/kubernetes"
  const files = readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml")
    .sort()
  const documents = files.flatMap((name) => manifests(`${folder}/${name}`))
  const of = (kind: string): ReadonlyArray<Json> => documents.filter((document) => document["kind"] === kind)
  const podsOf = (kind: string) =>
    of(kind).map((set) => ({
      set,
      name: String(at(set, "metadata", "name")),
      spec: at(set, "spec", "template", "spec") as Json,
      main: at(set, "spec", "template", "spec", "containers", 0) as Json
    }))
  const sets = podsOf("StatefulSet"),
    jobs = podsOf("Job")

  it("lists every file, of the image of this version", () => {
    const kustomization = parse(text(`${folder}/kustomization.yaml`)) as Json
    expect([...(kustomization["resources"] as ReadonlyArray<string>)].sort()).toEqual(files)
    expect(list(kustomization["images"])[0]).toMatchObject({ name: image.split(":")[0], newTag: version })
    expect(sets.map(({ main, name }) => [name, main["image"]])).toEqual([
      ["scheduler", image],
      ["ssp", image]
    ])
  })
  it("each door takes its settings without a word, keeps its data on a mount, and reads its secrets from one", () => {
    for (const { main, spec, set } of [...sets, ...jobs]) {
      expect(faultsOf(podContainer(main))).toEqual([])
      const mounts = list(main["volumeMounts"]).map(({ mountPath }) => String(mountPath))
      expect(mounts).toContain("/data")
      for (const value of Object.values(podContainer(main).env).filter((each) => each.startsWith("/run/secrets/")))
        expect(
          mounts.some((mount) => value.startsWith(`${mount}/`)),
          value
        ).toBe(true)
      const volumes = [
        ...list(spec["volumes"]).map(({ name }) => name),
        ...list(at(set, "spec", "volumeClaimTemplates")).map((claim) => at(claim, "metadata", "name"))
      ]
      expect(
        list(main["volumeMounts"])
          .map(({ name }) => name)
          .filter((name) => !volumes.includes(name))
      ).toEqual([])
    }
  })
  it("ports are those the doors listen on, in containers, Services and policies alike", () => {
    for (const { main, name } of sets) {
      const { port } = read(podContainer(main)) as Answer
      expect(list(main["ports"])).toEqual([{ name: "http", containerPort: port }])
      for (const service of of("Service").filter(
        (each) => at(each, "spec", "selector", "app.kubernetes.io/name") === name
      ))
        expect(list(at(service, "spec", "ports")).map((each) => each["port"])).toEqual([port])
      const policy = of("NetworkPolicy").find((each) => at(each, "metadata", "name") === name)
      expect(list(at(policy, "spec", "ingress", 0, "ports")).map((each) => each["port"])).toEqual([port])
      expect(at(policy, "spec", "policyTypes")).toEqual(["Ingress", "Egress"])
    }
    expect(
      of("PodDisruptionBudget").map((each) => at(each, "spec", "selector", "matchLabels", "app.kubernetes.io/name"))
    ).toEqual(["ssp"])
  })
  it("probes ask paths that the doors serve without a secret, and a stop has the time it needs", () => {
    for (const { main, name, spec } of sets) {
      const served = endpoints(name === "ssp" ? "ssp" : "scheduler")
        .filter(({ bearer }) => bearer === "none")
        .map((endpoint) => endpoint.name)
      const probes = ["startupProbe", "livenessProbe", "readinessProbe"].map((probe) =>
        String(at(main, probe, "httpGet", "path"))
      )
      expect(probes).toEqual(name === "ssp" ? ["/version", "/version", "/health"] : ["/livez", "/livez", "/readyz"])
      expect(
        probes.filter((path) => !served.includes(`GET ${path}`)),
        `${name}: ${served.join(", ")}`
      ).toEqual([])
      expect(Number(spec["terminationGracePeriodSeconds"])).toBeGreaterThan(5 + 10)
      expect(at(main, "lifecycle", "preStop", "exec", "command", 0)).toBe("node")
    }
  })
  it("nothing runs as root, writes to its root, or has a right it does not need", () => {
    for (const { main, spec } of [...sets, ...jobs]) {
      expect([main["image"], at(main, "resources", "limits", "memory")], String(main["name"])).toEqual([
        image,
        expect.stringMatching(/^\d+[MG]i$/)
      ])
      expect(spec["securityContext"]).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 1000,
        fsGroup: 1000,
        seccompProfile: { type: "RuntimeDefault" }
      })
      expect(main["securityContext"]).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] }
      })
      expect(spec["automountServiceAccountToken"]).toBe(false)
    }
  })
  it("the owner's password is mounted where the user is defined that all others run as, and nowhere else", () => {
    const mountsOwner = ({ spec }: (typeof sets)[number]): boolean =>
      JSON.stringify(spec["volumes"]).includes("live-sidecar-owner")
    expect([...sets, ...jobs].filter(mountsOwner).map(({ name }) => name)).toEqual(["database-user"])
    for (const { main, name } of sets)
      expect(
        [podContainer(main).env["STORE_USER"] ?? podContainer(main).env["SVC_SCHEDULER_DB_USERNAME"]],
        name
      ).toEqual([defaultName])
    expect(jobs.map(({ main }) => main["args"])).toEqual([
      ["dist/ssp.js", "--install-database-setup", "--least-privilege"]
    ])
  })
  it("can fail: a misspelt setting, a path off the volume and a bad value are seen", () => {
    const env = secrets
    expect(
      faultsOf({
        name: "x",
        image,
        args: ["dist/ssp.js"],
        env: { ...env, SCHEDULER_URL: "http://a", SVC_MAX_VIEW: "1" }
      })
    ).toHaveLength(1)
    expect(
      faultsOf({ name: "x", image, args: ["dist/scheduler.js"], env: { ...env, SVC_SCHEDULER_WAL_PATH: "/var/wal" } })
    ).toHaveLength(1)
    expect(
      faultsOf({ name: "x", image, args: ["dist/scheduler.js"], env: { ...env, SVC_SCHEDULER_INGEST_PORT: "port" } })
    ).toHaveLength(1)
    expect(faultsOf({ name: "x", image, args: ["dist/other.js"], env })).toHaveLength(1)
  })
})
