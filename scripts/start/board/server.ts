/**
 * The board: a small live application, and what its server does for it.
 *
 * It serves the page, knows its visitors by a cookie, gives them views by name (`views.ts`), and sends what they edit to
 * `/ingest`. It alone has the secret; the page gets a token for the views that it follows, and reads them at the service
 * itself. To make another application of it, change `views.ts`, `records.ts` and `page/`.
 */
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Either, Schema } from "effect"
import { build } from "esbuild"
import type { ViewsHandlerOptions } from "../../../src/views.ts"
import { root } from "../child.ts"
import type { Change } from "../data.ts"
import { Edit, Records } from "./records.ts"
import { type Visitor, views } from "./views.ts"
import { type Handler, listen } from "./web.ts"

/** The scheduler of a cluster, or one SSP: where it is, and its secret. The rest is as the handler of views takes it. */
export type Service = Pick<ViewsHandlerOptions<Visitor>, "url" | "publicUrl" | "tokenMs" | "log"> & {
  readonly secret: string
}

const names = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivo", "June", "Kim", "Lou", "Mia", "Noor"]
const mostVisitors = 1000
const mostBytes = 4096
const mostUnsent = 100
/** As long as an SSP takes to be started again. */
const usualPatienceMs = 20_000

const folder = join(root, "scripts/start/board/page")

/** The page's script with what it imports, as one file. */
const script = async (): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [join(root, "scripts/start/board/page/board.ts")],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    sourcemap: "inline",
    logLevel: "warning"
  })
  return outputFiles[0]!.text
}

type Files = { readonly [path: string]: readonly [type: string, text: string] }

export class Board {
  readonly port: number
  /** Of its pages, for SVC_BROWSER_ORIGINS of the service. */
  readonly origins: ReadonlyArray<string>
  readonly #close: () => Promise<void>
  readonly #files: Files
  readonly #visitors = new Map<string, Visitor>()
  readonly #records = new Records()
  #service: Service | undefined
  #views: Handler | undefined
  readonly #patienceMs: number
  /** Edits go one behind another, so that the service has them in the order in which the records have. */
  #last: Promise<unknown> = Promise.resolve()
  /** Changes that the service has not taken. */
  #unsent: ReadonlyArray<Change> = []

  private constructor(port: number, files: Files, patienceMs: number, close: () => Promise<void>) {
    this.port = port
    this.#patienceMs = patienceMs
    this.origins = [`http://127.0.0.1:${port}`, `http://localhost:${port}`]
    this.#files = files
    this.#close = close
  }

  /** Takes its port, before there is a service: that must be told who may ask it. */
  static async listen(port: number, patienceMs = usualPatienceMs): Promise<Board> {
    const text = (name: string): string => readFileSync(join(folder, name), "utf8")
    const files = {
      "/": ["text/html; charset=utf-8", text("index.html")],
      "/board.css": ["text/css; charset=utf-8", text("board.css")],
      "/board.js": ["text/javascript; charset=utf-8", await script()]
    } satisfies Files
    let handler: Handler = async () => new Response("starting", { status: 503 })
    const { port: taken, server } = await listen(port, (request) => handler(request))
    const board = new Board(taken, files, patienceMs, async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    })
    handler = (request) => board.#handle(request)
    return board
  }

  get url(): string {
    return this.origins[0]!
  }

  /** Fills the service with what is on the board, and goes on with it. */
  async open(service: Service): Promise<void> {
    this.#service = service
    // Here pages reach the service where this server does.
    this.#views = views.handler({
      publicUrl: service.url,
      ...service,
      authenticate: (request) => this.#visitorOf(request)
    })
    await this.#ingest(this.#records.filling())
  }

  async close(): Promise<void> {
    await this.#close()
  }

  /** Does what a visitor asks for; answers in words why it cannot be, once the service shows it otherwise. */
  edit(edit: Edit, visitor: Visitor): Promise<string | undefined> {
    const done = this.#last.then(async () => {
      if (this.#unsent.length > mostUnsent) return (await this.#ingest([])) ?? "try again"
      const changes = this.#records.take(edit, visitor)
      return typeof changes === "string" ? changes : this.#ingest(changes)
    })
    this.#last = done.catch(() => undefined)
    return done
  }

  async #handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (this.#views === undefined) return new Response("the board is starting", { status: 503 })
    if (pathname === "/views") return this.#views(request)
    if (pathname === "/edits" && request.method === "POST") return this.#edits(request)
    const file = Object.hasOwn(this.#files, pathname) ? this.#files[pathname] : undefined
    if (file === undefined) return new Response("not here", { status: 404 })
    const [type, text] = file
    const headers = new Headers({ "content-type": type, "cache-control": "no-store" })
    if (pathname !== "/") return new Response(text, { headers })
    const visitor = this.#visitorOf(request) ?? this.#welcome(headers)
    return new Response(text.replace("{{name}}", visitor.name), { headers })
  }

  #visitorOf(request: Request): Visitor | undefined {
    return this.#visitors.get(/(?:^|;\s*)board=([\w-]+)/.exec(request.headers.get("cookie") ?? "")?.[1] ?? "")
  }

  /** A visitor as yet unknown. An application has users who sign in. */
  #welcome(headers: Headers): Visitor {
    const id = randomUUID()
    const visitor = { id, name: names[this.#visitors.size % names.length]! }
    if (this.#visitors.size >= mostVisitors) this.#visitors.delete(this.#visitors.keys().next().value!)
    this.#visitors.set(id, visitor)
    headers.set("set-cookie", `board=${id}; HttpOnly; SameSite=Strict; Path=/`)
    return visitor
  }

  async #edits(request: Request): Promise<Response> {
    const refuse = (status: number, message: string) => Response.json({ message }, { status })
    const visitor = this.#visitorOf(request)
    if (visitor === undefined) return refuse(401, "the board does not know you: load the page again")
    // No form of another page can send this type.
    if (request.headers.get("content-type") !== "application/json") return refuse(415, "send application/json")
    if (!(Number(request.headers.get("content-length") ?? Number.NaN) <= mostBytes)) return refuse(413, "too long")
    const edit = Schema.decodeUnknownEither(Edit)(await request.json().catch(() => undefined))
    if (Either.isLeft(edit)) return refuse(400, "empty, too long, or nothing the board knows")
    const why = await this.edit(edit.right, visitor)
    return why === undefined ? Response.json({}) : refuse(409, why)
  }

  /**
   * Sends changes, and again until the service has taken them: one that is started again does so a moment later. Those
   * that it has not taken after a while go with the next edit. Answers why they wait.
   */
  async #ingest(changes: ReadonlyArray<Change>): Promise<string | undefined> {
    const { secret, url } = this.#service!
    const deadline = performance.now() + this.#patienceMs
    this.#unsent = [...this.#unsent, ...changes]
    for (;;) {
      const status = await fetch(`${url}/ingest`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
        body: JSON.stringify(this.#unsent),
        signal: AbortSignal.timeout(this.#patienceMs)
      }).then(
        (answer) => answer.text().then(() => answer.status),
        () => 503
      )
      if (status === 200) {
        this.#unsent = []
        return undefined
      }
      if (status < 500 || performance.now() > deadline) return `the service does not take it now (${status})`
      await sleep(100)
    }
  }
}
