/**
 * TLS of real processes: files at the start, new ones on SIGHUP while clients go on, and a cluster whose nodes know
 * each other by certificate.
 *
 * The certificates are made here and live as long as a test.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { connect, type TLSSocket } from "node:tls"
import { describe, expect, it } from "vitest"
import { type Ask, request } from "../../kit/checks/http.ts"
import { authority, type Issued, issue } from "../../kit/data/certificates.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Door, freePort, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { paste } from "../../kit/processes/paste.ts"
import { workshop } from "../../kit/processes/workshop.ts"

/** Writes the files of a node and says how they are named to it. */
const filesIn = (folder: string, ca?: string) => {
  mkdirSync(folder, { recursive: true })
  const file = (name: string): string => join(folder, name)
  const write = ({ cert, key }: Issued): void => {
    writeFileSync(file("cert.pem"), cert)
    writeFileSync(file("key.pem"), key, { mode: 0o600 })
  }
  if (ca !== undefined) writeFileSync(file("ca.pem"), ca)
  return {
    file,
    write,
    env: {
      SVC_TLS_CERT_FILE: file("cert.pem"),
      SVC_TLS_KEY_FILE: file("key.pem"),
      ...(ca === undefined ? {} : { SVC_TLS_CA_FILE: file("ca.pem") })
    }
  }
}

const reloaded = async (door: Door, what: RegExp): Promise<void> => {
  const from = door.logs.length
  door.signal("SIGHUP")
  await until(`${what} in the log`, () => what.test(door.logs.slice(from)))
}

const connected = (port: number, ca: string): Promise<TLSSocket> =>
  new Promise((done, failed) => {
    const socket = connect({ port, host: "127.0.0.1", ca }, () => done(socket)).once("error", failed)
  })

const subjectOf = async (port: number, ca: string): Promise<string | undefined> => {
  const socket = await connected(port, ca)
  const subject = socket.getPeerX509Certificate()?.subject
  socket.destroy()
  return subject
}

/** A scheduler and an SSP whose nodes show certificates, at `https://`. */
const cluster = async (onTestFinished: (cleanup: () => Promise<void>) => void) => {
  const secrets = { SVC_SCHEDULER_AUTH_SECRET: "own" }
  const shop = workshop(onTestFinished)
  const folder = shop.folder(),
    port = await freePort()
  const { node, root } = authority()
  const [ofScheduler, ofSsp] = [
    filesIn(join(folder, "scheduler-tls"), root.cert),
    filesIn(join(folder, "ssp-tls"), root.cert)
  ]
  ofScheduler.write(node({ common: "scheduler" }))
  ofSsp.write(node({ common: "ssp" }))
  const ca = root.cert,
    url = `https://127.0.0.1:${port}`
  const scheduler = await Door.spawn({
    command: [process.execPath, "dist/scheduler.js"],
    dataDir: folder,
    env: {
      ...ofScheduler.env,
      ...secrets,
      SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "replica"),
      SVC_SCHEDULER_WAL_PATH: join(folder, "wal.log"),
      SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
      SVC_SCHEDULER_INGEST_PORT: String(port),
      SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "50",
      SVC_SCHEDULER_DELIVERY_WAIT_MS: "30000",
      LISTEN_ADDR: undefined,
      STORE_ADDR: undefined,
      SVC_DATA_DIR: undefined
    }
  })
  onTestFinished(() => scheduler.close())
  const config = join(folder, "svc.yml")
  const backend = await TestBackend.start()
  onTestFinished(() => backend.close())
  writeFileSync(
    config,
    `job_tables:\n  mail_job:\n    name: mail\n    base_url: ${backend.url}\n    auth_token: ${backend.token}\n`
  )
  const ssp = await shop.start({
    ca,
    env: {
      ...ofSsp.env,
      ...secrets,
      SCHEDULER_URL: url,
      SSP_ID: "one",
      HEARTBEAT_INTERVAL_MS: "100",
      STORE_ADDR: undefined,
      SVC_CONFIG_PATH: config
    }
  })
  const ask = (ask: Ask) => request(url, { token: "own", tls: { ca }, ...ask })
  await until("the SSP is ready", async () => (await ask({ path: "/health" }).catch(() => undefined))?.status === 200)
  return { scheduler, ssp, ofScheduler, ofSsp, node, ca, ask, backend }
}

describe("TLS of processes", () => {
  it("D52 a file that will not do is named by --check-config and at the start, by both processes", async ({
    onTestFinished
  }) => {
    const folder = workshop(onTestFinished).folder()
    const { env, write } = filesIn(folder)
    const [mine, other] = [authority().node(), authority().node()]
    write({ ...mine, key: other.key })
    const exits = await Promise.all(
      [
        ["dist/ssp.js", "--check-config"],
        ["dist/ssp.js"],
        ["dist/scheduler.js", "--check-config"],
        ["dist/scheduler.js"]
      ].map(async ([file = "", ...args]) => {
        const door = await Door.spawn({ command: [process.execPath, file], dataDir: folder, env }, ...args)
        onTestFinished(() => door.close())
        return [
          (await door.exited).code,
          /SVC_TLS_KEY_FILE: \S+key\.pem holds a key that does not belong to the certificate of SVC_TLS_CERT_FILE/.test(
            door.logs
          )
        ]
      })
    )
    expect(exits).toEqual(exits.map(() => [2, true]))
  })
  it.each([
    ["for the address", ["127.0.0.1"], true],
    ["for the address, self-signed", ["127.0.0.1"], false],
    ["for a name alone", ["views.example"], true]
  ] as const)("D52 --quickstart prints lines that work with a certificate %s", async (_, hosts, isIssued) => {
    const folder = temporaryFolder()
    const ca = authority()
    const files = filesIn(folder, isIssued ? ca.root.cert : undefined)
    files.write(isIssued ? ca.node({ hosts }) : issue({ hosts }))
    const door = await Door.spawn({ env: files.env, dataDir: folder }, "--quickstart")
    try {
      const lines = await until("the lines to try", () => {
        const found = [...door.logs.matchAll(/^ {2}((?:curl|sleep) .*)$/gm)].map(([, line]) => line!)
        return found.length === 4 ? found : undefined
      })
      const [registered, , , result] = await paste(lines)
      expect(JSON.parse(registered!), door.logs).toMatchObject({ query_id: "incantation:fast" })
      expect(result).toContain("Pontiac GTO")
      const [, trusted = ""] = /--cacert '([^']+)'/.exec(lines[0]!) ?? []
      expect(existsSync(trusted)).toBe(true)
      await door.stop()
      expect(existsSync(trusted)).toBe(false)
    } finally {
      await door.close()
      removeFolder(folder)
    }
  })

  it("D52 SIGHUP puts new files in force and cuts no connection off; files that will not do leave the old ones, and an error in the log", async ({
    onTestFinished
  }) => {
    const shop = workshop(onTestFinished)
    const { node, root } = authority()
    const tls = filesIn(shop.folder())
    tls.write(node({ common: "first" }))
    const door = await Door.start({ ca: root.cert, env: { ...tls.env, SVC_LOG_FORMAT: "json" } })
    onTestFinished(() => door.close())
    const health = await Door.spawn({ env: { ...tls.env, LISTEN_ADDR: `127.0.0.1:${door.port}` } }, "--health")
    onTestFinished(() => health.close())
    expect((await health.exited).code).toBe(0)
    expect((await request(`http://127.0.0.1:${door.port}`, { path: "/info", keepAlive: false })).json).toMatchObject({
      code: "INVALID_REQUEST",
      message: expect.stringContaining("https://")
    })

    const open = await connected(door.port, root.cert)
    onTestFinished(() => void open.destroy())
    let text = ""
    open.on("data", (chunk) => {
      text += chunk.toString("utf8")
    })
    const ask = (path: string): void =>
      void open.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secret}\r\n\r\n`)
    ask("/version")
    await until("the connection is used", () => text.includes('"mode":"standalone"'))
    const unused = (await connected(door.port, root.cert)).on("error", () => {})
    tls.write(node({ common: "second" }))
    await reloaded(door, /the certificate of SVC_TLS_CERT_FILE is replaced/)
    expect(await subjectOf(door.port, root.cert)).toBe("CN=second")
    writeFileSync(tls.file("key.pem"), "nothing")
    await reloaded(
      door,
      /"level":"error"[^\n]*the certificate of SVC_TLS_CERT_FILE stays what it was: SVC_TLS_KEY_FILE: \S+ holds no private key/i
    )
    expect(await subjectOf(door.port, root.cert)).toBe("CN=second")
    tls.write(node({ common: "third", days: -1 }))
    await reloaded(door, /"level":"warn[^\n]*cert\.pem expired on/i)
    ask("/health")
    await until("the connection of before is still served", () => text.includes('"status":"ready"'))
    expect((await door.stop()).code).toBe(0)
    unused.destroy()
    expect(door.logs).not.toMatch(/PRIVATE KEY|MII|still busy/)
  })
  it("D52 D15 a cluster whose nodes know each other by certificate: everything between them goes on, a neighbour without one is refused, new files need no restart", async ({
    onTestFinished
  }) => {
    const { ask, backend, ca, node, ofScheduler, ofSsp, scheduler, ssp } = await cluster(onTestFinished)
    const ingest = async (n: number) => (await ask({ method: "POST", path: "/ingest", body: create(`t:${n}`) })).json
    expect(await ingest(1)).toMatchObject({ delivered: 1 })
    expect(
      (
        await ask({
          method: "POST",
          path: "/view/register",
          body: registration("incantation:v", "SELECT VALUE id FROM t", { format: "tree" })
        })
      ).status
    ).toBe(200)
    const rows = async () => (await request(ssp.url, { path: "/view/v", token: secret, tls: { ca } })).json
    expect(await rows()).toMatchObject({ result_data: ["t:1"] })
    expect((await ask({ path: "/view/incantation:v", token: "own" })).json).toMatchObject({ result_data: ["t:1"] })
    expect(
      (
        await ask({
          method: "POST",
          path: "/job/dispatch",
          body: { job_id: "mail_job:1", table: "mail_job", payload: { path: "/send", body: { n: 1 } } }
        })
      ).status
    ).toBe(200)
    await until("the job's end is reported", async () =>
      (
        await ask({ method: "POST", path: "/proxy/query", body: { query: "SELECT VALUE status FROM mail_job" } })
      ).text.includes('"success"')
    )
    expect(backend.calls("mail_job:1").length).toBe(1)

    const stranger = authority().node()
    for (const tls of [{ ca }, { ca, cert: stranger.cert, key: stranger.key }]) {
      expect(
        (
          await ask({
            method: "POST",
            path: "/ssp/register",
            body: { ssp_id: "false", url: "https://127.0.0.1:1" },
            tls
          })
        ).json
      ).toMatchObject({ code: "FORBIDDEN", message: expect.stringContaining("SVC_TLS_CA_FILE") })
      expect(
        (await request(ssp.url, { method: "POST", path: "/ingest", token: secret, body: create("t:9"), tls })).status
      ).toBe(403)
    }
    const mine = node({ common: "another" })
    const inTheClear = await ask({
      method: "POST",
      path: "/ssp/register",
      body: { ssp_id: "clear", url: "http://127.0.0.1:1" },
      tls: { ca, cert: mine.cert, key: mine.key }
    })
    expect([inTheClear.status, inTheClear.text]).toEqual([400, expect.stringContaining("https://")])

    ofScheduler.write(node({ common: "scheduler-2" }))
    ofSsp.write(node({ common: "ssp-2" }))
    for (const door of [scheduler, ssp]) await reloaded(door, /the certificate of SVC_TLS_CERT_FILE is replaced/)
    expect(await ingest(2)).toMatchObject({ delivered: 1 })
    expect([await subjectOf(Number(new URL(ssp.url).port), ca), await rows()]).toEqual([
      "CN=ssp-2",
      expect.objectContaining({ result_data: ["t:1", "t:2"] })
    ])
    const jobs = await Door.spawn(
      { command: [process.execPath, "dist/jobs.js"], env: { ...ofSsp.env, LISTEN_ADDR: `127.0.0.1:${ssp.port}` } },
      "list",
      "mail_job",
      "--status",
      "all"
    )
    onTestFinished(() => jobs.close())
    expect([(await jobs.exited).code, jobs.logs]).toEqual([0, expect.stringContaining("mail_job:1")])
    expect([(await ssp.stop()).code, (await scheduler.stop()).code]).toEqual([0, 0])
  })
})
