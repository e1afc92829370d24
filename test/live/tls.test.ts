/**
 * TLS of real processes: files at the start, new ones on SIGHUP while clients go on, and a cluster whose nodes know each other by certificate.
 *
 * The certificates are made here and live as long as a test.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { connect, type TLSSocket } from "node:tls"
import { describe, expect, it } from "vitest"
import { authority, type Issued } from "../kit/certificates.ts"
import { Door, secret, until } from "../kit/Door.ts"
import { request } from "../kit/http.ts"
import { workshop } from "../kit/workshop.ts"

/** Writes the files of a node and says how they are named to it. */
const filesIn = (folder: string, ca?: string) => {
  mkdirSync(folder, { recursive: true })
  const file = (name: string): string => join(folder, name)
  const write = ({ cert, key }: Issued): void => {
    writeFileSync(file("cert.pem"), cert)
    writeFileSync(file("key.pem"), key, { mode: 0o600 })
  }
  if (ca !== undefined) writeFileSync(file("ca.pem"), ca)
  return { file, write, env: { SVC_TLS_CERT_FILE: file("cert.pem"), SVC_TLS_KEY_FILE: file("key.pem"), ...(ca === undefined ? {} : { SVC_TLS_CA_FILE: file("ca.pem") }) } }
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

describe("TLS of processes", () => {
  it("D49 a file that will not do is named by --check-config and at the start, by both processes", async ({ onTestFinished }) => {
    const folder = workshop(onTestFinished).folder()
    const { env, write } = filesIn(folder)
    const [mine, other] = [authority().node(), authority().node()]
    write({ ...mine, key: other.key })
    const exits = await Promise.all([["dist/ssp.js", "--check-config"], ["dist/ssp.js"], ["dist/scheduler.js", "--check-config"], ["dist/scheduler.js"]].map(async ([file = "", ...args]) => {
      const door = await Door.spawn({ command: [process.execPath, file], dataDir: folder, env }, ...args)
      onTestFinished(() => door.close())
      return [(await door.exited).code, /SVC_TLS_KEY_FILE: \S+key\.pem holds a key that does not belong to the certificate of SVC_TLS_CERT_FILE/.test(door.logs)]
    }))
    expect(exits).toEqual(exits.map(() => [2, true]))
  })
  it("D49 SIGHUP puts new files in force and cuts nobody off; files that will not do leave the old ones, and an error in the log", async ({ onTestFinished }) => {
    const shop = workshop(onTestFinished)
    const { node, root } = authority()
    const tls = filesIn(shop.folder())
    tls.write(node({ common: "first" }))
    const door = await Door.start({ ca: root.cert, env: { ...tls.env, SVC_LOG_FORMAT: "json" } })
    onTestFinished(() => door.close())
    const health = await Door.spawn({ env: { ...tls.env, LISTEN_ADDR: `127.0.0.1:${door.port}` } }, "--health")
    onTestFinished(() => health.close())
    expect((await health.exited).code).toBe(0)
    expect((await request(`http://127.0.0.1:${door.port}`, { path: "/info", keepAlive: false })).json).toMatchObject({ code: "INVALID_REQUEST", message: expect.stringContaining("https://") })

    const open = await connected(door.port, root.cert)
    onTestFinished(() => void open.destroy())
    let text = ""
    open.on("data", (chunk) => {
      text += chunk.toString("utf8")
    })
    const ask = (path: string): void => void open.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secret}\r\n\r\n`)
    ask("/version")
    await until("the connection is used", () => text.includes('"mode":"standalone"'))
    tls.write(node({ common: "second" }))
    await reloaded(door, /the certificate of SVC_TLS_CERT_FILE is replaced/)
    expect(await subjectOf(door.port, root.cert)).toBe("CN=second")
    writeFileSync(tls.file("key.pem"), "nothing")
    await reloaded(door, /"level":"error"[^\n]*the certificate of SVC_TLS_CERT_FILE stays what it was: SVC_TLS_KEY_FILE: \S+ holds no private key/i)
    expect(await subjectOf(door.port, root.cert)).toBe("CN=second")
    tls.write(node({ common: "third", days: -1 }))
    await reloaded(door, /"level":"warn[^\n]*cert\.pem expired on/i)
    ask("/health")
    await until("the connection of before is still served", () => text.includes('"status":"ready"'))
    expect((await door.stop()).code).toBe(0)
    expect(door.logs).not.toMatch(/PRIVATE KEY|MII/)
  })
})
