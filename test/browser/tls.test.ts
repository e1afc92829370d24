/**
 * The dashboard over TLS in a real Chromium: the page, its calls and the stream of a view, from an SSP that asks nodes
 * for certificates.
 *
 * Why a browser: it is asked for a certificate in the handshake and has none, and only it decides what its pages may
 * call.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { authority } from "../../kit/data/certificates.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Chromium, missing, named } from "../../kit/processes/browser.ts"
import { secret } from "../../kit/processes/Door.ts"
import { workshop } from "../../kit/processes/workshop.ts"

describe.skipIf(missing !== undefined)(named("the dashboard over TLS"), () => {
  it("D52 is loaded, unlocked, and follows a view", async ({ onTestFinished }) => {
    const shop = workshop(onTestFinished)
    const folder = shop.folder()
    const { node, root } = authority()
    const { cert, key } = node()
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const env = {
      SVC_TLS_CERT_FILE: file("cert.pem", cert),
      SVC_TLS_KEY_FILE: file("key.pem", key),
      SVC_TLS_CA_FILE: file("ca.pem", root.cert)
    }
    const [door, chromium] = await Promise.all([shop.start({ ca: root.cert, env }), Chromium.launch()])
    onTestFinished(() => chromium.close())
    const post = (path: string, body: unknown) =>
      request(door.url, { method: "POST", path, token: secret, body, tls: { ca: root.cert } })
    await post("/ingest", create("item:1", { name: "first" }))
    expect(
      (await post("/view/register", registration("incantation:v", "SELECT * FROM item", { format: "tree" }))).status
    ).toBe(200)

    const seen = await chromium.visit(door.url, { ignoreCertificate: true })
    seen.page.setDefaultTimeout(100_000)
    await seen.go("/#views")
    await seen.page.locator("#secret").fill(secret)
    await seen.page.keyboard.press("Enter")
    await seen.page.locator("tr[data-row]", { hasText: "incantation:v" }).click()
    await seen.page.locator(".panel .live td", { hasText: "first" }).waitFor()
    await post("/ingest", create("item:2", { name: "second" }))
    await seen.page.locator(".panel .live tr.added", { hasText: "second" }).waitFor()
    expect(seen.faults.filter((fault) => !/status of 40[01]/.test(fault))).toEqual([])
  })
})
