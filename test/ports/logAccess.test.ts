/**
 * The rights of a log's user that the run book prints, each of which is needed, and what a start says of a login or a
 * certificate that is not taken.
 */
import { randomUUID } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { authority } from "../../kit/data/certificates.ts"
import * as Replicas from "../../kit/data/replicaFiles.ts"
import { Door, freePort, removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import { noContacts } from "../../src/core/cluster/term.ts"
import * as KeptSnapshots from "../../src/host/snapshots/keptSnapshots.ts"
import { SharedLog } from "../../src/ports/SharedLog.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"

const page = readFileSync(join(import.meta.dirname, "../../docs/runbook.md"), "utf8")

const blocksOf = (heading: string, language: string): ReadonlyArray<string> => {
  const section = page.split(/^### /m).find((each) => each.startsWith(`${heading}\n`)) ?? ""
  return [...section.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, text]) => text!)
}

const noServer = Nats.hasServer ? "" : " (skipped: no nats-server in the path)"
const noDatabase = Postgres.isReachable ? "" : " (skipped: no PostgreSQL; SVC_TEST_POSTGRES names one)"

type Leading = typeof Nats.leading | typeof Postgres.leading

/** All that schedulers do with a log: one leads, writes, cuts and hands over, another one leads, reads and writes. */
const used = (leading: Leading, url: string) =>
  Effect.gen(function* () {
    const one = yield* leading(url, "one")
    const begin = yield* one.wal.lastSeq
    yield* one.pool.open(one.log.logId)
    yield* one.pool.write([{ tag: "PersistJob", row: { job: "job:1", table: "job", home: undefined, told: false } }])
    for (const each of ["1", "2", "3"]) yield* one.wal.append([each])
    yield* one.log.announce({
      ...noContacts,
      self: "x",
      name: "one",
      url: "http://one",
      applied: begin + 3,
      synced: begin + 3
    })
    expect((yield* one.log.members(60_000)).some(({ name }) => name === "one")).toBe(true)
    yield* one.wal.dropBefore(begin + 3)
    yield* one.pool.write([{ tag: "ForgetJob", job: "job:1" }])
    expect(yield* one.log.beat(one.epoch)).toBeDefined()
    yield* one.log.handOver((yield* one.log.row).leader!)
    const two = yield* leading(url, "two")
    yield* two.wal.append(["4"])
    expect((yield* two.log.page(begin + 2, begin + 4)).map(({ json }) => json)).toEqual(["3", "4"])
    yield* two.log.handOver((yield* two.log.row).leader!)
  }).pipe(Effect.scoped)

/** What it fails with; "" where it does not. */
const saidBy = (use: Effect.Effect<unknown, unknown>): Promise<string> =>
  Effect.runPromise(Effect.match(use, { onFailure: (error) => (error as Error).message, onSuccess: () => "" }))

const opening = (layer: Layer.Layer<SharedLog, StartFault>) => Effect.scoped(Layer.build(layer))

/** A scheduler as a process: serving, or ended; `said` is its whole log. */
const scheduler = async (url: string, ca?: string) => {
  const folder = temporaryFolder()
  const port = await freePort()
  const door = await Door.spawn({
    command: [process.execPath, "dist/scheduler.js"],
    dataDir: folder,
    env: {
      SVC_LOG_URL: url,
      SVC_LOG_REPLICAS: "1",
      SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "replica"),
      SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
      SVC_SCHEDULER_INGEST_PORT: String(port),
      NODE_EXTRA_CA_CERTS: ca,
      LISTEN_ADDR: undefined,
      STORE_ADDR: undefined,
      SVC_DATA_DIR: undefined
    }
  })
  onTestFinished(async () => {
    await door.close()
    removeFolder(folder)
  })
  return { door, port }
}

describe.skipIf(!Nats.hasServer)(`who may use the log on NATS${noServer}`, () => {
  const [printed = "", keeping = ""] = blocksOf("The log on NATS", "text")
  /** The lines with a permission; each of them is one that the driver must have. */
  const permissions = printed.split("\n").filter((line) => line.includes('"'))
  const userOf = (user: string, log: string, lacking: (line: string) => boolean = () => false): string =>
    printed
      .split("\n")
      .filter((line) => !(permissions.includes(line) && lacking(line)))
      .join("\n")
      .replace("user: svc,", `user: ${user},`)
      .replace(/subscribe: \[\s*\]/, 'subscribe: [ "nothing" ]')
      .replace(/\bname\b/g, log)
  const subscribing = permissions.findIndex((line) => line.includes("subscribe"))
  const lacking = permissions.map((each, i) =>
    i === subscribing
      ? userOf(`less-${i}`, `less-${i}`).replace(/"_INBOX[^"]*"/, '"nothing"')
      : userOf(`less-${i}`, `less-${i}`, (line) => line === each)
  )
  /** Those of one that keeps snapshots beside the log, too. */
  const keeps = keeping.split("\n").filter((line) => line.includes('"'))
  const keeperOf = (user: string, more: ReadonlyArray<string>, log = user): string =>
    userOf(user, log, (line) => log !== user && line.includes("first start")).replace(
      "publish: [",
      ["publish: [", ...more].join("\n").replace(/\bname\b/g, log)
    )
  const users = [
    keeperOf("keeper", keeps),
    ...keeps.map((each, i) =>
      keeperOf(
        `keeper-${i}`,
        keeps.filter((line) => line !== each)
      )
    ),
    keeperOf(
      "keeper-later",
      keeps.filter((line) => !line.includes("first start")),
      "keeper"
    ),
    userOf("whole", "whole"),
    userOf("later", "whole", (line) => line.includes("first start")),
    userOf("other", "other"),
    ...lacking
  ]
  const certificates = authority()
  const folder = temporaryFolder()
  let open: Nats.Servers, tls: Nats.Servers

  beforeAll(async () => {
    const node = certificates.node()
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    file("ca.pem", certificates.root.cert)
    const files = `cert_file: "${file("cert.pem", node.cert)}", key_file: "${file("key.pem", node.key)}"`
    ;[open, tls] = await Promise.all([
      Nats.Servers.start(1, `authorization { users = [\n${users.join("\n")}\n] }`),
      Nats.Servers.start(1, `tls { ${files} }\nauthorization { token: "a-token" }`)
    ])
  })
  afterAll(async () => {
    await Promise.all([open?.close(), tls?.close()])
    removeFolder(folder)
  })

  const urlOf = (user: string, log: string, password = "choose-one"): string =>
    open.url.replace("nats://", `nats://${user}:${password}@`).concat(`/${log}`)
  const secured = (log: string, token = "a-token"): string => `${tls.url.replace("nats://", `tls://${token}@`)}/${log}`

  test("D62 the printed permissions are enough, and later without those of the first start", async () => {
    expect(permissions.length).toBe(11)
    expect(await saidBy(used(Nats.leading, urlOf("whole", "whole")))).toBe("")
    expect(await saidBy(used(Nats.leading, urlOf("later", "whole")))).toBe("")
  })

  test.each(permissions.map((line, i) => [/"([^"]*)"/.exec(line)![1]!, i] as const))(
    "D62 a user without %s is told so",
    async (permission, i) => {
      const said = await saidBy(used(Nats.leading, urlOf(`less-${i}`, `less-${i}`)))
      const lacks = permission.replace(/\bname\b/, `less-${i}`).replace(/[*>]$/, "")
      expect(said).toContain(
        `(SVC_LOG_URL): its user may not ${i === subscribing ? "subscribe" : "publish"} to "${lacks}`
      )
      expect(said).toContain("run book")
    },
    30_000
  )

  /** Three snapshots, of which the first goes, and the newest read back. */
  const kept = (log: string, user = log, from = 1) =>
    Effect.gen(function* () {
      const { own, replica } = yield* Replicas.open()
      const shared = Context.get(yield* Layer.build(Nats.sharedOf(urlOf(user, log))), SharedLog)
      const snapshots = KeptSnapshots.make(yield* shared.snapshots!, { logId: "a-log", intervalMs: 0 })
      for (const n of [from, from + 1, from + 2]) {
        yield* Replicas.filled(replica, n, 1)
        expect(yield* snapshots.keep(own, n + 1)).toBe(n)
      }
      const [offer] = yield* snapshots.offers(3)
      expect(yield* Effect.scoped(Effect.flatMap(offer!.open, Replicas.bytesOf))).not.toHaveLength(0)
    }).pipe(Effect.scoped)

  test("D64 the printed permissions of snapshots are enough, later without those of the first start, and one that lacks is named", async () => {
    expect(keeps.length).toBe(5)
    expect(await saidBy(kept("keeper"))).toBe("")
    expect(keeps.filter((line) => line.includes("first start")).length).toBe(1)
    expect(await saidBy(kept("keeper", "keeper-later", 4))).toBe("")
    for (const [i, line] of keeps.entries()) {
      const lacks = /"([^"]*)"/.exec(line)![1]!.replace(/\bname\b/, `keeper-${i}`)
      expect(await saidBy(kept(`keeper-${i}`))).toContain(`may not publish to "${lacks.replace(/>$/, "")}`)
    }
  })

  test("D62 a user of one log reads neither another one nor what its schedulers are answered", async () => {
    expect(await saidBy(opening(Nats.sharedOf(urlOf("other", "whole"))))).toMatch(
      /may not subscribe to "_INBOX\.svc-whole\./
    )
    const { connect } = (await import("@nats-io/transport-node")) as unknown as Listening
    const login = { user: "other", pass: "choose-one", inboxPrefix: "_INBOX.svc-other" }
    const listening = await connect({ servers: open.url.slice(7), ...login })
    onTestFinished(() => listening.close())
    for (const [subject, isDenied] of [
      ["_INBOX.svc-whole.>", true],
      ["_INBOX.>", true],
      ["svc.log.whole.*", true],
      ["_INBOX.svc-other.>", false]
    ] as const) {
      const denied = new Promise((resolve) => listening.subscribe(subject, { callback: (error) => resolve(error) }))
      const flushed = listening.flush().then(() => undefined)
      expect([subject, (await Promise.race([denied, flushed])) !== undefined]).toEqual([subject, isDenied])
    }
    for (const subject of ["$JS.API.STREAM.MSG.GET.svc-log-whole", "svc.log.whole.records"])
      await expect(listening.request(subject, "{}", { timeout: 5_000 })).rejects.toThrow(/Permissions Violation/)
  })

  test("D62 a wrong password, token or certificate ends the start, and is named without the secret", async () => {
    for (const url of [urlOf("whole", "whole", "hidden"), urlOf("stranger", "whole", "hidden")]) {
      const said = await saidBy(opening(Nats.sharedOf(url)))
      expect(said).toMatch(/\(SVC_LOG_URL\) cannot be reached: the server refuses its user, password or token/)
      expect(said).not.toContain("hidden")
    }
    const said = await saidBy(opening(Nats.sharedOf(secured("log", "hidden"))))
    expect(said).toMatch(/\(SVC_LOG_URL\) cannot be reached: .*NODE_EXTRA_CA_CERTS/)
    expect(said).not.toContain("hidden")
  })

  test("D62 a scheduler serves over TLS with a token, and ends with 1 where the token is wrong", async () => {
    const ca = join(folder, "ca.pem")
    const [right, wrong] = await Promise.all([scheduler(secured("log"), ca), scheduler(secured("log", "hidden"), ca)])
    const livez = `http://127.0.0.1:${right.port}/livez`
    await until("it serves", async () => (await fetch(livez).catch(() => undefined))?.status === 200, 30_000)
    expect((await wrong.door.exited).code).toBe(1)
    expect(wrong.door.logs).toMatch(/SVC_LOG_URL.*refuses its user, password or token/)
    for (const { door } of [right, wrong]) expect(door.logs).not.toMatch(/hidden|a-token/)
  })
})

/** What a listener on the wire needs of the client. */
interface Listening {
  readonly connect: (options: object) => Promise<{
    readonly subscribe: (subject: string, options: { readonly callback: (error: unknown) => void }) => unknown
    readonly request: (subject: string, data: string, options: object) => Promise<unknown>
    readonly flush: () => Promise<void>
    readonly close: () => Promise<void>
  }>
}

describe.skipIf(!Postgres.isReachable)(`who may use the log in PostgreSQL${noDatabase}`, () => {
  const [before = "", after = ""] = blocksOf("Who may use the log in PostgreSQL", "sql")
  const roles: Array<string> = []

  const run = async (statements: string, role: string): Promise<void> => {
    for (const each of statements
      .replaceAll("svc_name", role)
      .split(";\n")
      .filter((text) => text.trim() !== ""))
      await Postgres.ask(each)
  }
  const roleOf = async (): Promise<{ readonly role: string; readonly url: string }> => {
    const role = `svc_test_${randomUUID().replaceAll("-", "")}`
    roles.push(role)
    await run(before, role)
    const url = new URL(Postgres.address)
    url.username = role
    url.password = "choose-one"
    return { role, url: `${url.href}?log=name` }
  }
  afterAll(async () => {
    for (const role of roles) {
      await Postgres.ask(`DROP SCHEMA ${role} CASCADE`)
      await Postgres.ask(`DROP ROLE ${role}`)
    }
  })

  test("D60 the printed rights are enough, at the first start and later, and each is needed", async () => {
    const { role, url } = await roleOf()
    expect(await saidBy(used(Postgres.leading, url))).toBe("")
    await run(after, role)
    expect(await saidBy(used(Postgres.leading, url))).toBe("")
    await expect(Postgres.ask("DROP TABLE svc_log", [], url.split("?")[0])).rejects.toThrow()
    for (const right of ["SELECT", "INSERT", "UPDATE", "DELETE"]) {
      await Postgres.ask(`REVOKE ${right} ON ALL TABLES IN SCHEMA ${role} FROM ${role}`)
      expect(await saidBy(used(Postgres.leading, url))).toMatch(/\(SVC_LOG_URL\) refused: permission denied.*run book/)
      await Postgres.ask(`GRANT ${right} ON ALL TABLES IN SCHEMA ${role} TO ${role}`)
    }
  })

  test("D60 a user that may not create is told so at the first start, and none reads another one's log", async () => {
    const [one, two] = [await roleOf(), await roleOf()]
    await Postgres.ask(`REVOKE CREATE ON SCHEMA ${one.role} FROM ${one.role}`)
    expect(await saidBy(opening(Postgres.sharedOf(one.url)))).toMatch(
      /\(SVC_LOG_URL\) refused: permission denied for schema.*42501.*run book/
    )
    expect(await saidBy(opening(Postgres.sharedOf(two.url)))).toBe("")
    await expect(Postgres.ask(`SELECT * FROM ${two.role}.svc_log`, [], one.url.split("?")[0])).rejects.toThrow()
  })
})
