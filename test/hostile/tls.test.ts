/**
 * A server that speaks TLS: who gets in with which certificate, what happens to who speaks something else, new files
 * while it runs.
 *
 * In this process, because handshakes, tickets and half-open connections are what is tested; processes are in
 * `test/live/tls.test.ts`.
 */
import { connect as connectPlain, type Socket } from "node:net"
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls"
import { describe, expect, it } from "vitest"
import { type Answer, type Ask, request } from "../../kit/checks/http.ts"
import { authority, type Issued } from "../../kit/data/certificates.ts"
import { create } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import type { ListenOptions } from "../../src/host/http/Listener.ts"
import type { Tls } from "../../src/node/config/tls.ts"
import type { TlsMaterial } from "../../src/ports/ConfigSource.ts"
import { secret } from "../ssp/fakeViews.ts"
import { type Served, serve } from "./serving.ts"

const afterwards = closing()

/** Files that a test replaces. */
class Files implements Tls {
  material: TlsMaterial
  readonly isMutual: boolean
  private readonly listeners = new Set<() => void>()

  constructor(material: TlsMaterial) {
    this.material = material
    this.isMutual = material.ca !== undefined
  }

  readonly current = (): TlsMaterial => this.material

  readonly onReplaced = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  replace(material: TlsMaterial): void {
    this.material = material
    for (const listener of this.listeners) listener()
  }
}

const filesOf = ({ cert, key }: Issued, ca?: string): Files => new Files({ cert, key, ca })

const started = async (
  tls: Tls,
  options: Partial<ListenOptions> = {}
): Promise<Served & { readonly ask: (ask: Ask) => Promise<Answer> }> => {
  const served = await serve({ tls, ...options })
  afterwards(() => served.close())
  return {
    ...served,
    url: `https://127.0.0.1:${served.port}`,
    ask: (ask) => request(`https://127.0.0.1:${served.port}`, { token: secret, ...ask })
  }
}

const opened = <S extends Socket>(socket: S, event: "connect" | "secureConnect"): Promise<S> =>
  new Promise((done, failed) => {
    afterwards(() => void socket.destroy())
    socket.once("error", failed).once(event, () => done(socket))
  })

const secure = (port: number, options: ConnectionOptions): Promise<TLSSocket> =>
  opened(connect({ port, host: "127.0.0.1", ...options }), "secureConnect")

/** What comes on a connection until `ends` says so, or it closes. */
const told = (
  socket: Socket,
  bytes: string | Uint8Array,
  ends: (text: string) => boolean = () => false
): Promise<{ readonly text: string; readonly closed: boolean; readonly error: string | undefined }> =>
  new Promise((done) => {
    let text = "",
      error: string | undefined
    const finish = (closed: boolean): void => done({ text, closed, error })
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (ends(text)) finish(false)
    })
    socket.on("error", (thrown: NodeJS.ErrnoException) => {
      error = thrown.code
    })
    socket.once("close", () => finish(true))
    if (bytes.length > 0) socket.write(bytes)
  })

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
const get = (path: string, more = "connection: close\r\n"): string =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${secret}\r\n${more}\r\n`
const { node, root } = authority()
const ca = root.cert

describe("a server with a certificate", () => {
  it("D52 answers routes by callback and by effect over TLS 1.2 and 1.3, and nothing older", async () => {
    const { ask, port } = await started(filesOf(node()))
    expect((await ask({ method: "POST", path: "/ingest", body: create("t:1"), tls: { ca } })).status).toBe(200)
    expect((await ask({ path: "/info", tls: { ca } })).status).toBe(200)
    for (const version of ["TLSv1.2", "TLSv1.3"] as const)
      expect((await secure(port, { ca, minVersion: version, maxVersion: version })).getProtocol()).toBe(version)
    await expect(
      secure(port, { ca, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" })
    ).rejects.toThrow(/version|protocol/i)
    await expect(ask({ path: "/info", tls: { ca: authority().root.cert } })).rejects.toThrow(/certificate|signature/)
  })
  it("D47 D52 a page of its own origin may post, one of another may not", async () => {
    const { ask, port, url } = await started(filesOf(node()))
    const from = async (origin: string): Promise<number> =>
      (await ask({ method: "POST", path: "/ingest", headers: { origin }, body: create("t:1"), tls: { ca } })).status
    expect([await from(url), await from(`https://127.0.0.1:${port + 1}`), await from("https://evil.example")]).toEqual([
      200, 403, 403
    ])
  })
  it("D52 a client that speaks plain HTTP is told so, one with another protocol is cut off, and others go on", async () => {
    const { ask, port } = await started(filesOf(node()))
    const plain = await told(await opened(connectPlain(port, "127.0.0.1"), "connect"), get("/info"))
    expect(plain).toMatchObject({
      closed: true,
      error: undefined,
      text: expect.stringMatching(/^HTTP\/1\.1 400 [^]*INVALID_REQUEST[^]*this port speaks TLS: ask https:/)
    })
    for (const bytes of ["\0\0\0\0\0\0\0\0\0\0", "SSH-2.0-x\r\n", Uint8Array.of(0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0)]) {
      expect(await told(await opened(connectPlain(port, "127.0.0.1"), "connect"), bytes)).toMatchObject({
        closed: true
      })
    }
    expect((await ask({ path: "/info", tls: { ca } })).status).toBe(200)
  })
  it("D17 D52 a connection beyond the limit is told which, probes are answered, and a body is counted and given back", async () => {
    const { ask, port } = await started(filesOf(node()), {
      maxConnections: 4,
      maxConnectionsPerAddress: 2,
      maxBodyBytes: 65_536,
      maxBodyBytesTotal: 65_536
    })
    const held = [await secure(port, { ca }), await opened(connectPlain(port, "127.0.0.1"), "connect")]
    await expect.poll(async () => (await ask({ path: "/info", tls: { ca } })).status, { timeout: 10_000 }).toBe(503)
    expect((await ask({ path: "/info", tls: { ca } })).text).toContain("SVC_MAX_CONNECTIONS_PER_ADDRESS")
    expect((await ask({ path: "/version", tls: { ca } })).status).toBe(200)
    for (const socket of held) socket.destroy()
    const post = `POST /ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer ${secret}\r\ncontent-length: 65000\r\n\r\n${" ".repeat(64_000)}`
    await expect.poll(async () => (await ask({ path: "/info", tls: { ca } })).status, { timeout: 10_000 }).toBe(200)
    for (let n = 0; n < 4; n++) {
      const socket = await secure(port, { ca })
      socket.write(post)
      socket.end()
      await told(socket, "")
    }
    await expect
      .poll(async () => (await ask({ method: "POST", path: "/ingest", body: create("t:1"), tls: { ca } })).status, {
        timeout: 10_000
      })
      .toBe(200)
  })
  it("D52 stops though a client has begun no handshake and another follows a view", async () => {
    const served = await serve({ tls: filesOf(node()) })
    const silent = await opened(connectPlain(served.port, "127.0.0.1"), "connect")
    const following = await secure(served.port, { ca })
    expect((await told(following, get("/view/here/stream"), (text) => text.includes("event: snapshot"))).text).toMatch(
      /^HTTP\/1\.1 200/
    )
    const ends = [told(silent, ""), told(following, "")]
    await served.close()
    expect((await Promise.all(ends)).map(({ closed }) => closed)).toEqual([true, true])
  })
})

const nodePaths = ["/ssp/", "/ingest"]
const spelled = [
  "/ingest",
  "/INGEST",
  "//ingest",
  "/ingest/",
  "/%69ngest",
  "/%49NGEST",
  "/ingest?x=1",
  "/ingest;x",
  "/ingest#x",
  "http://localhost/ingest",
  "/ssp/register",
  "/Ssp//Register",
  "/%73sp/register",
  "/ssp%zz/register",
  "/a/../ingest"
]

describe("a server whose nodes show certificates", () => {
  const mutual = (options: Partial<ListenOptions> = {}) => started(filesOf(node(), ca), { nodePaths, ...options })
  const mine = ({ cert, key }: Issued) => ({ ca, cert, key })
  it("403 D52 what only nodes ask, however it is spelled, needs a certificate of the authority; the secret alone does for the rest", async () => {
    const { ask, port } = await mutual()
    for (const path of spelled) {
      const { text } = await told(await secure(port, { ca }), get(path).replace("GET", "POST"))
      expect([path, statusOf(text), /FORBIDDEN.*SVC_TLS_CA_FILE/.test(text)]).toEqual([path, 403, true])
    }
    const stranger = authority().node()
    for (const shown of [{ ca }, { ca, cert: stranger.cert, key: stranger.key }, mine(node({ days: -1 }))])
      expect((await ask({ method: "POST", path: "/ingest", body: create("t:1"), tls: shown })).status).toBe(403)
    expect((await ask({ method: "POST", path: "/ingest", body: create("t:1"), tls: mine(node()) })).status).toBe(200)
    expect(
      (await ask({ method: "POST", path: "/ingest", token: undefined, body: create("t:1"), tls: mine(node()) })).status
    ).toBe(401)
    expect((await ask({ path: "/info", tls: { ca } })).status).toBe(200)
  })
  it("403 D52 where no secret is asked for, everything but probes and pages without data needs a certificate", async () => {
    const { ask } = await mutual({ isOpen: true })
    const status = async (path: string, tls: Ask["tls"]) => (await ask({ path, tls })).status
    expect([
      await status("/info", { ca }),
      await status("/version", { ca }),
      await status("/openapi.json", { ca }),
      await status("/info", mine(node()))
    ]).toEqual([403, 200, 200, 200])
  })
  it("D52 a session that is resumed proves nothing by itself", async () => {
    const { port } = await mutual()
    const asked = async (options: ConnectionOptions) => {
      const socket = await secure(port, { ca, ...options })
      // In TLS 1.3 there is none yet.
      let session = socket.getSession()
      socket.on("session", (ticket) => {
        session = ticket
      })
      const resumed = socket.isSessionReused()
      const { text } = await told(socket, get("/ingest").replace("GET", "POST"))
      return { status: statusOf(text), resumed, session }
    }
    for (const maxVersion of ["TLSv1.3", "TLSv1.2"] as const) {
      const first = await asked({ maxVersion })
      const again = await asked({ maxVersion, session: first.session })
      expect([first.status, again.status, again.resumed]).toEqual([403, 403, true])
      const node1 = await asked({ maxVersion, ...mine(node()) })
      expect([node1.status, (await asked({ maxVersion, ...mine(node()), session: node1.session })).status]).toEqual([
        400, 400
      ])
    }
  })
  it("D52 new files are in force for new connections, those that are open stay, and sessions of an authority that is gone are not resumed", async () => {
    const files = filesOf(node({ common: "first" }), ca)
    const { port } = await started(files, { nodePaths })
    const subject = (socket: TLSSocket): string => socket.getPeerX509Certificate()?.subject ?? ""
    const open = await secure(port, { ...mine(node()) })
    let session: Buffer | undefined
    open.on("session", (ticket) => {
      session = ticket
    })
    const ended = (text: string): boolean => /"(?:code|version)"/.test(text)
    expect(statusOf((await told(open, get("/ingest", "").replace("GET", "POST"), ended)).text)).toBe(400)
    const other = authority("other")
    const next = other.node({ common: "second" })
    files.replace({ cert: next.cert, key: next.key, ca: other.root.cert })
    expect(statusOf((await told(open, get("/version", ""), ended)).text)).toBe(200)
    expect([subject(open), subject(await secure(port, { ca: other.root.cert }))]).toEqual(["CN=first", "CN=second"])
    const old = await secure(port, {
      ...mine(node()),
      ca: [ca, other.root.cert],
      ...(session === undefined ? {} : { session })
    })
    expect([old.isSessionReused(), statusOf((await told(old, get("/ingest").replace("GET", "POST"))).text)]).toEqual([
      false,
      403
    ])
    const { cert, key } = other.node()
    expect(
      statusOf(
        (await told(await secure(port, { ca: other.root.cert, cert, key }), get("/ingest").replace("GET", "POST"))).text
      )
    ).toBe(400)
  })
})
