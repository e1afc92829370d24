/**
 * Pages in a real headless Chromium: opened, watched for what must not happen, photographed.
 *
 * Why Debian's browser and not a downloaded one: it comes through the package manager that CI trusts. Nothing can leave
 * the machine, because every other host name fails to resolve; that a page tried is a fault the test sees. Where there
 * is no Chromium, tests are skipped and say why.
 */
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { root } from "../rules/source.ts"

const path = process.env["CHROMIUM_PATH"] || "/usr/bin/chromium"
const isRoot = process.getuid?.() === 0

/** Why browser tests cannot run here, for `describe.skipIf(missing !== undefined)`. */
export const missing: string | undefined = existsSync(path)
  ? undefined
  : `no Chromium at ${path}: install it (apt-get install chromium) or name one in CHROMIUM_PATH`

/** The name of a suite in the browser, with the reason where it is skipped. */
export const named = (name: string): string => (missing === undefined ? name : `${name} [skipped: ${missing}]`)

if (missing !== undefined) console.warn(`browser tests are skipped: ${missing}`)

/** Screenshots of this run, ignored by git. */
export const outputFolder = join(root, "test-output")

export interface VisitOptions {
  /** Size of the window in CSS pixels, 1280 x 800 by default. */
  readonly viewport?: { readonly width: number; readonly height: number }
  readonly colorScheme?: "light" | "dark"
  /** A device pixel ratio above 1, and touch, as a phone has. */
  readonly phone?: boolean
  /** Takes any certificate, as an operator does who knows the service's own. */
  readonly ignoreCertificate?: boolean
  /** Another service that the page asks. */
  readonly asks?: string
}

const stays = (url: string, origins: ReadonlyArray<string>): boolean =>
  /^(?:data|blob|about):/.test(url) || origins.includes(new URL(url).origin)

/** One window on one service: the page itself for the test to drive, and what went wrong on it so far. */
export class Visit {
  readonly page: Page
  readonly origin: string
  /** Errors on the console, exceptions nobody caught, and requests that wanted to leave the origin and what it asks. */
  readonly faults: Array<string> = []

  constructor(page: Page, origin: string, asks: string | undefined) {
    this.page = page
    this.origin = origin
    const origins = asks === undefined ? [origin] : [origin, new URL(asks).origin]
    page.on("console", (message) => {
      if (message.type() === "error") this.faults.push(`console: ${message.text()} (${message.location().url})`)
    })
    page.on("pageerror", (error) => this.faults.push(`exception: ${error.stack ?? error.message}`))
    page.on("request", (request) => {
      if (!stays(request.url(), origins)) this.faults.push(`request to ${request.url()}`)
    })
    page.on("websocket", (socket) => {
      if (!stays(socket.url().replace(/^ws/, "http"), origins)) this.faults.push(`socket to ${socket.url()}`)
    })
  }

  async go(path: string): Promise<void> {
    await this.page.goto(this.origin + path)
  }

  /** A picture of the window, or of the whole page, as `test-output/<name>.png`; answers and prints where it is. */
  async screenshot(name: string, fullPage = false): Promise<string> {
    mkdirSync(outputFolder, { recursive: true })
    const file = join(outputFolder, `${name}.png`)
    await this.page.screenshot({ path: file, fullPage })
    console.log(`screenshot: ${file}`)
    return file
  }

  async close(): Promise<void> {
    await this.page.context().close()
  }
}

/**
 * What a window would load beside its page: pages of its own for suggestions under the address, which take three
 * quarters of its processor time, and a process to spare. The last list of its kind counts, so those of the driver's
 * that matter to pages are in it too.
 */
const unused = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "SpareRendererForSitePerProcess",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
  "ThirdPartyStoragePartitioning"
]

/** One for all files of a worker, and gone with it: the browser ends when nothing holds its pipe. */
let shared: Promise<Browser> | undefined

/** Windows for the tests of a file; `close` ends every one of them. They share nothing with those of other files. */
export class Chromium {
  readonly #browser: Browser
  readonly #windows: Array<BrowserContext> = []

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async launch(): Promise<Chromium> {
    if (missing !== undefined) throw new Error(missing)
    shared ??= chromium.launch({
      executablePath: path,
      headless: true,
      chromiumSandbox: !isRoot,
      args: [
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
        "--disable-gpu",
        `--disable-features=${unused.join(",")}`
      ]
    })
    if (!(await shared).isConnected()) {
      shared = undefined
      return Chromium.launch()
    }
    return new Chromium(await shared)
  }

  /** A window of its own, with nothing stored, that belongs to the service at `url`. Call `go` to open a page of it. */
  async visit(
    url: string,
    {
      asks,
      colorScheme = "light",
      ignoreCertificate = false,
      phone = false,
      viewport = phone ? { width: 390, height: 844 } : { width: 1280, height: 800 }
    }: VisitOptions = {}
  ): Promise<Visit> {
    const context: BrowserContext = await this.#browser.newContext({
      colorScheme,
      viewport,
      ignoreHTTPSErrors: ignoreCertificate,
      isMobile: phone,
      hasTouch: phone,
      deviceScaleFactor: phone ? 2 : 1
    })
    this.#windows.push(context)
    return new Visit(await context.newPage(), new URL(url).origin, asks)
  }

  async close(): Promise<void> {
    await Promise.all(this.#windows.map((each) => each.close()))
  }
}
